"""A vendor's live SQLite file, read without a byte written near it."""
