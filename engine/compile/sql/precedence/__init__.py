"""Spark's precedence of operators (SqlBaseParser.g4), which sqlglot's parser does not have.

`&` binds tighter than `^` and that than `|`, shifts bind tighter than all three, `||` is on the level of `+`, all
comparisons are on one level, and a predicate (IS, IN, LIKE, ..) applies to everything to its left. sqlglot's tree keeps
the operands in order, so chains are regrouped.
"""
