"""Sinks: a table's committed changes, delivered to another system together with the position that they reach.

A sink reads the snapshots that were committed since its position, without Spark, and gives their rows to a target. Each
target writes rows and position in one transaction, so that no row is lost or delivered twice.

    column_values    what each type of column becomes in a target
    position         how far a sink has delivered
    delivery         from changes to transactions
    postgres, kafka  the targets
"""
