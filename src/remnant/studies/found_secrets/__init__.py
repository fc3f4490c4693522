"""How exposed are secrets that were found in the training text?"""
