"""Spark's precedence of operators, which sqlglot's parser does not have.

In Spark's grammar (SqlBaseParser.g4, `valueExpression` and `booleanExpression`) `&` binds tighter than `^` and that
tighter than `|`, shifts bind tighter than all three, `||` is on the level of `+`, all comparisons are on one level,
and a predicate (IS, IN, LIKE, BETWEEN, ..) applies to everything to its left, comparisons included. sqlglot's tree
has the operands in the order of the text, so that a chain of operators is taken apart and put together again.
"""
