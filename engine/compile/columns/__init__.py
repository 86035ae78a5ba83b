"""A query is read once: its columns with names, types and origins as Spark has them, and its steps.

`find_columns` is the way in; `queries`, `from_clause` and `expressions` walk the query, `column_scope` says what a name
means, `select_plan`, `group_plan` and `from_plan` make the steps, the other modules check. The results are the records
of `engine.compile.nodes.column_facts` and steps of `engine.compile.streaming.query_plan`.

Nothing here changes the tree, and nothing raises for what it does not understand: that stays unknown.
"""

from engine.compile.nodes.column_facts import ColumnFacts, InputColumns, Origin, QueryColumns, Unresolved
from engine.compile.nodes.query_finding import QueryFinding

__all__ = ["ColumnFacts", "InputColumns", "Origin", "QueryColumns", "QueryFinding", "Unresolved"]
