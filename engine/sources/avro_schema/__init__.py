"""Avro's schemas: their text, types, binary encoding, and the columns that Spark gives them."""
