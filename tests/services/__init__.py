"""Real parts that tests and `make kafka` start: they live on the loopback interface only, on free ports."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive whose content is pinned, by a hash or in the repository."""
    with tarfile.open(archive) as file:
        # Rejects links and paths that lead out, and devices; Python 3.11.2 has no filters and ignores it.
        file.extraction_filter = getattr(tarfile, "data_filter", None)
        file.extractall(folder)
