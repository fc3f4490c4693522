"""How fast does a classifier forget examples, measured along one run?"""
