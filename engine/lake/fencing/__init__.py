"""A writer whose lease was taken over commits nothing, at whatever moment it was stopped.

A lease is read again before each commit, but a process can be suspended between that and the commit. So whoever takes
a lease over from a run that did not release it first raises a fence in the table: the number of its lease in a property
and a snapshot without rows, in one commit. A commit that was under way then conflicts (a catalog compares the whole
table or, as REST does, the snapshot it was made onto), looks at the table again, and finds a number above its own.
"""
