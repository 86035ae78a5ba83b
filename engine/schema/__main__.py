"""Write the pages of the reference, which are generated from the keys."""

from __future__ import annotations

import sys
from pathlib import Path

from engine.schema.reference_pages import reference_pages


def main(docs: Path) -> None:
    docs.mkdir(parents=True, exist_ok=True)
    for name, text in reference_pages().items():
        (docs / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
