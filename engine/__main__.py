"""`python -m engine` is the command `engine`."""

import sys

# `python -m` looks for modules in the current folder first, and that may be a project that somebody else wrote: a file
# yaml.py in it would run. What Python itself imports before this line is found there all the same (`python -P` helps).
if not sys.flags.safe_path:
    del sys.path[0]

try:
    from engine.cli.entry import main
except KeyboardInterrupt:
    sys.exit(130)

main()
