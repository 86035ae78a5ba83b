"""Spark's rules of streaming, checked without Spark.

The binder (`engine.compile.columns`) makes a plan of a query (`query_plan`), in which each column knows whether it
carries the watermark; the rules are functions over that plan. `query_plan.optimize` derives the plan as it runs.
"""
