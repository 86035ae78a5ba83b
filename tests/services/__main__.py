"""Runs a command while a Kafka broker and a schema registry run: python -m tests.services FOLDER COMMAND...

The command finds their addresses in KAFKA_BOOTSTRAP and SCHEMA_REGISTRY. Whatever way it ends, both end with it. What
the broker holds stays in the folder; the registry forgets.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.services import kafka, registry


def main(folder: str, *command: str) -> int:
    """The exit code of the command."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    place = Path(folder).resolve()
    with kafka.running(place / "broker") as broker, registry.running(place / "registry") as found:
        print(f"==> a Kafka broker at {broker.address}, data in {broker.folder}", flush=True)
        print(f"==> a schema registry at {found.url}", flush=True)
        env = {**os.environ, "KAFKA_BOOTSTRAP": broker.address, "SCHEMA_REGISTRY": found.url}
        return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
