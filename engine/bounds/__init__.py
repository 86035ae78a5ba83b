"""Bounded readers for input from strangers: files, answers of web servers, JSON.

Size, depth and time are limited; exceeding a limit raises an error of Python's that the caller turns into a diagnostic.
`regular_file` reads files and JSON, `http_exchange` speaks HTTP.
"""
