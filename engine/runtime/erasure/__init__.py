"""Erasing the rows of a person."""
