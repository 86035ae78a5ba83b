"""What spark-submit runs, as a file of its own: the command line, in the JVM that started this process.

In client mode its last arguments say where the project is. In cluster mode the project and the engine are unpacked
beside it, where nobody may write.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

SHIPPED = Path("headrace")


def main(arguments: list[str]) -> None:
    if arguments[-2:-1] != ["--project-dir"]:
        sys.path.insert(0, str((SHIPPED / "lib").resolve()))
        project = Path(tempfile.mkdtemp(prefix="headrace-")) / "project"
        shutil.copytree(SHIPPED / "project", project)
        arguments = [*arguments, "--project-dir", str(project)]
    os.environ["ENGINE_SUBMITTED"] = "1"
    from engine.cli.main import main as command

    command(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
