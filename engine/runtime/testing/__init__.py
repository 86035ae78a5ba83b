"""Data tests."""
