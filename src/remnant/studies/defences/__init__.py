"""Which remedies keep a planted secret from being exposed, and what do they cost?"""
