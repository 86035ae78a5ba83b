"""SQL over tables of a lake without Java: DuckDB, given rows that PyIceberg has read."""
