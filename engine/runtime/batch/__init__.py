"""Batch tables and views."""
