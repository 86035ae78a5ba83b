"""Where the command `engine` begins: a warm process does the work, if there is one; else this process does."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command."""
    try:
        _main()
    except KeyboardInterrupt:
        # While modules are loaded; from then on the command itself ends with this line.
        from engine.cli.console.safe_output import write

        write("interrupted", error=True)
        sys.exit(130)


def _main() -> None:
    from engine.cli.warm.handover import hand_over

    code = hand_over(sys.argv[1:])
    if code is not None:
        sys.exit(code)
    from engine.cli.console.live_area import AREA

    AREA.first(sys.argv[1:])
    from engine.cli.main import main as own_process

    own_process()
