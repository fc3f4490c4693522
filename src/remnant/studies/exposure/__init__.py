"""How exposed are planted secrets, and can they be extracted?"""
