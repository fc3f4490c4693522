"""How exposed are secrets planted in the training pairs of a translator?"""
