"""Importers: projects of dbt and Flare become projects of this one; the commands of the group `import` call them.

What is read comes from others: it is read with bounds, nothing of it is executed, and nothing is written outside the
folder that the command names.
"""
