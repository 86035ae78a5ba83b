"""Explanations of all diagnostics: one Markdown file for each topic, shown by `engine explain` and the documentation.

`codes` lists every code with its file; `explanations` reads the files, whose form README.md defines.
"""
