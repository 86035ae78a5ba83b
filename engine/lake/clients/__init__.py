"""Clients of catalogs without Java, by kind; what is removed through them; what their servers do wrong."""
