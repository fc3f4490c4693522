"""Options that several commands share, and the files they name: read, checked, refused."""
