"""Which samples will a classifier memorise?"""
