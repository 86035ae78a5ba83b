"""Bounds for what strangers wrote: one reader of files, one client of web servers, one parser of JSON.

Size, depth and time are limited for the whole of each; what exceeds a limit is an error of Python's that the caller
turns into a diagnostic.
"""
