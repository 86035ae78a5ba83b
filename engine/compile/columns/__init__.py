"""Columns of a query: their names and types as Spark has them, and the columns they come from.

    facts      what is told about a query
    find       the way in: columns_of a query
    queries    SELECT, UNION, GROUP BY, ORDER BY: the columns of a query and what decides on its rows
    relations  FROM, joins, CTEs, lateral views
    scope      what a name means
    values     expressions; calls: functions; functions: what they return; widening, types: Spark's types
    names      what Spark calls a column without an alias
    texts      the user's text of a column

Nothing here changes the tree, and nothing raises for what it does not understand: that stays unknown.
"""

from engine.compile.columns.facts import ColumnFacts, Fault, InputColumns, Origin, QueryColumns, Unresolved

__all__ = ["ColumnFacts", "Fault", "InputColumns", "Origin", "QueryColumns", "Unresolved"]
