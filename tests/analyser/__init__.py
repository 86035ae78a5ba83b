"""Random batch queries: compile's verdict beside that of Spark's analyser (`python -m tests.analyser`)."""
