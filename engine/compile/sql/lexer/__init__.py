"""Spark's lexer (SqlBaseLexer.g4, 4.1): the lexemes of a text, the values of its literals, sqlglot's tokens of it."""
