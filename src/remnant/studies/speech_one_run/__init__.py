"""How fast does a recogniser of speech forget utterances, measured along one run?"""
