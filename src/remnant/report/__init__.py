"""What pages are made of, and the renderers: HTML, terminal, tables. They know no question."""
