"""Which training choices change the exposure of a planted secret?"""
