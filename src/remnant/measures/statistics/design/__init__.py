"""What scores show of how they were made: copies, shared canaries, clusters."""
