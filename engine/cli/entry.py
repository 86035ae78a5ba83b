"""Where the command `engine` begins."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from engine.cli.console.live_area import AREA

        AREA.first(sys.argv[1:])
        from engine.cli.main import main as carry_out

        carry_out()
    except KeyboardInterrupt:
        # While modules are loaded; from then on the command itself ends with this line.
        from engine.cli.console.safe_output import write

        write("interrupted", error=True)
        sys.exit(130)
