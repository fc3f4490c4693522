"""Which variants of a training expose a planted secret, and which remedies keep it from that?"""
