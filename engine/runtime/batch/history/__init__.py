"""Histories of full extracts: versions of rows, or changes of rows."""
