"""Where the command `engine` begins."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    # What a command makes lives about as long as it: looking for garbage often finds little.
    gc.set_threshold(50_000, 20, 50)
    try:
        from engine.cli.console.live_area import AREA

        AREA.show_starting(sys.argv[1:])
        from engine.cli.main import main as carry_out

        carry_out()
    except KeyboardInterrupt:
        # While modules are loaded; from then on the command itself ends with this line.
        from engine.cli.console.safe_output import write

        write("interrupted", error=True)
        sys.exit(130)
