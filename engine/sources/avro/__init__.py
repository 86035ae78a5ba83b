"""Avro values: how they are declared, their columns, and the decoding of records: `avro_values`."""
