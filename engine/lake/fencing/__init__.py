"""A writer whose lease was taken over commits nothing, at whatever moment it was stopped.

A process can be suspended between its look at the lease and its commit. So whoever takes a lease over from a run that
did not release it raises a fence: the number of its lease in a property and a snapshot without rows, in one commit. A
commit under way then conflicts, looks at the table again, and finds a number above its own.
"""
