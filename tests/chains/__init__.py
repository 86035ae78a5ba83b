"""Random chains of allowed edits over models with state, with rows between them, beside a computation of all rows."""
