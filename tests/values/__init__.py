"""Texts of every type in JSON, CSV, Kafka and names of folders: each one is read as it is written, or its record is bad."""
