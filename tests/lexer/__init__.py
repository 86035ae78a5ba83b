"""Random texts: the lexemes, tokens and values of compile beside those of Spark's lexer (`python -m tests.lexer`)."""
