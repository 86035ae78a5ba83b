"""The embedded catalog and its folder: where tables are, and what must not be read."""
