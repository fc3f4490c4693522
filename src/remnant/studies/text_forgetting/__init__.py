"""How fast does a language model forget token sequences?"""
