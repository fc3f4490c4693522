"""What differs between kinds of model: how each is fed, planted, trained, scored and judged."""
