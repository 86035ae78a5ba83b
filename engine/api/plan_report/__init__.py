"""The plan of a build as people and programs get it: a tree, lines, records, and a comment in Markdown."""
