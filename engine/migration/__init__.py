"""Projects of other tools become projects of this one, and tables of this one sources of others.

What is read comes from others: it is read with bounds, nothing of it is executed, and nothing is written outside the
folder that the command names.
"""
