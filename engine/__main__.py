"""`python -m engine` is the command `engine`."""

from engine.cli.main import main

main()
