"""A query is read once: its columns with names, types and origins as Spark has them, and its steps.

    find_columns        the way in: bind a query, columns_of it
    queries             SELECT, UNION, GROUP BY, ORDER BY: the columns of a query and its row-level lineage
    from_clause         FROM, joins, CTEs, lateral views; pivot_columns: PIVOT and UNPIVOT
    column_scope        what a name means
    expressions         expressions; function_calls: functions, argument_types and function_placement what they ask
    type_mismatch       what Spark's analyser rejects of types; list_lengths: of lists
    visible_columns     what ORDER BY and HAVING see behind DISTINCT, set operations and grouping sets
    default_names       what Spark calls a column without an alias
    column_texts        the user's text of a column
    select_plan         the steps of SELECT and set operations; group_plan: of GROUP BY; from_plan: of FROM
    plan_values         the expressions of a step: what they use, and which hand a watermark on; window_lengths
    plan_conditions     conditions, taken apart at AND; subquery_places: where Spark takes no subquery

What is known of a query are the records of `engine.compile.nodes.column_facts`; types are in `engine.compile.types`,
steps in `engine.compile.streaming.query_plan`.
Nothing here changes the tree, and nothing raises for what it does not understand: that stays unknown.
"""

from engine.compile.nodes.column_facts import ColumnFacts, InputColumns, Origin, QueryColumns, Unresolved
from engine.compile.nodes.query_finding import QueryFinding

__all__ = ["ColumnFacts", "InputColumns", "Origin", "QueryColumns", "QueryFinding", "Unresolved"]
