"""A project and what can be done with it: the command line, pytest, orchestrators and tests go through this.

Nothing here prints, ends the process, handles signals or opens a log file: what happens is in events, and in Python's
`logging` under the name `engine`. It works in any thread. A process runs one thing at a time, because it has one Spark
session at a time; POSIX systems only.
"""

from engine.api.project import Project, RunTest
from engine.api.requests import THREADS, Command, RebuildOptions, RunOptions, Select, Selection, runnable, sinks_among

__all__ = [
    "THREADS",
    "Command",
    "Project",
    "RebuildOptions",
    "RunOptions",
    "RunTest",
    "Select",
    "Selection",
    "runnable",
    "sinks_among",
]
