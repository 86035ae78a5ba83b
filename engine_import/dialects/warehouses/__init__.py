"""The functions, types and habits of each warehouse."""
