"""Build the documentation site: `python -m scripts.site.build [FOLDER]`; called by `make site`.

A warning of Sphinx (a link or an anchor that leads nowhere, a page outside the navigation) is an error.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

from scripts.site.page_texts import write_texts
from scripts.site.pages import HOME, ROOT, stage


def build(target: Path) -> int:
    """Write the site to a folder, which is emptied first, and return the exit code of Sphinx."""
    if target.exists():
        shutil.rmtree(target)
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary, "source")
        stage(source)
        settings = str(Path(__file__).parent)
        doctrees = str(Path(temporary, "doctrees"))
        code = build_main(
            ["-b", "html", "-q", "-W", "--keep-going", "-c", settings, "-d", doctrees, str(source), str(target)]
        )
    if code == 0:
        write_texts(target)
        # The home page also under the name that a browser asks for.
        shutil.copyfile(target / f"{HOME.removesuffix('.md')}.html", target / "index.html")
    return code


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "site"
    ended = build(folder)
    print(f"Wrote {folder / 'index.html'}" if ended == 0 else "The site has warnings, which are errors")
    sys.exit(ended)
