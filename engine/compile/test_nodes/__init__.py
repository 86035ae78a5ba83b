"""Data tests and unit tests as nodes, checked against the models they test."""
