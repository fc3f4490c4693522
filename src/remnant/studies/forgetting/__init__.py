"""How fast does a classifier forget examples, measured with twins (INJECT, POISON)?"""
