"""Speech: sound files, transcripts and the features that recognisers read."""
