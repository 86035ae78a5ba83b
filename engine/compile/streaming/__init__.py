"""Spark's rules of streaming, checked without Spark: functions over the plan that the binder makes of a query.

In it (`query_plan`) each column knows whether it carries the watermark; `optimize` derives the plan as it runs.
"""
