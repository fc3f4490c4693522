"""What a recipe may hold, read off the dataclasses: schema, commented recipe, reference."""
