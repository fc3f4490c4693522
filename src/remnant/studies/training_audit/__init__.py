"""What does this training still remember of the canaries planted in it?"""
