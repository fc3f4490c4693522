"""Can the records that a model was trained on be distinguished from held-out ones?"""
