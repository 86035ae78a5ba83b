"""A streaming query in a bounded build."""
