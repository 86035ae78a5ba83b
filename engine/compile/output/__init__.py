"""The columns that a model gives: names, types, contract, output mode."""
