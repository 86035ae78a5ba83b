"""The link to a served page, with its token: printed, and in a file below target/ that only the owner reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.docs.page_access import VARIABLE, others_read
from engine.docs.serve import SiteServer
from engine.target_folder import TargetFolder


@dataclass(frozen=True, slots=True)
class LinkPlace:
    fragment: str
    file: str


LIVE = LinkPlace("#/live", "live/page_link")
SITE = LinkPlace("", "docs_link")


@contextmanager
def shown_link(server: SiteServer, place: LinkPlace, target_dir: Path) -> Iterator[str]:
    """What to print while a page is served: its link, or where that is if others can read what is printed.

    Raises:
        ProjectError: `target-link`, `target-unwritable`.
    """
    link, address = server.link(place.fragment), f"{server.address}{place.fragment}"
    content = f"{link}\n".encode()
    with TargetFolder(target_dir) as folder:
        folder.write(place.file, content)
    try:
        if os.environ.get(VARIABLE):
            yield f"{address} (token: {VARIABLE})"
        elif others_read(sys.stdout):
            yield f"{address} (its link with the token: {target_dir / place.file})"
        else:
            yield link
    finally:
        with TargetFolder(target_dir) as folder:
            # Another server may have written its own meanwhile.
            if folder.read(place.file) == content:
                folder.remove(place.file)
