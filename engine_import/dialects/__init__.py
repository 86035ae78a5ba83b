"""SQL of other warehouses, around Jinja, in Spark's dialect."""
