"""Forgetting of speech: planted utterances in recognisers, INJECT and POISON."""
