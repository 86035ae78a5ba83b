"""Kafka topics as sources: `topics` is the kind."""
