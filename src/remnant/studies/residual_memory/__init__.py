"""Is what an attack no longer finds gone, or only hidden? Disturbances and later checkpoints."""
