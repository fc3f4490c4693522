"""Did a classifier memorise a patch that was in one training image?"""
