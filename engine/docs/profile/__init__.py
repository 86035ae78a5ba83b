"""Rows and columns of stored tables for the site: what they hold, where personal data is left out."""
