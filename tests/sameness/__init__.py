"""Random pairs of queries: what the engine calls the same beside what Spark computes (`python -m tests.sameness`)."""
