"""Write what is generated from the keys: the pages of the reference, and the JSON Schemas inside the package."""

from __future__ import annotations

import sys
from pathlib import Path

from engine.schema import FOLDER_OF_SCHEMAS
from engine.schema.all_blocks import FILES_OF_A_PROJECT
from engine.schema.json_schema import json_schema
from engine.schema.reference_pages import reference_pages


def main(docs: Path) -> None:
    """Write all files.

    Args:
        docs: the folder of the reference.
    """
    for folder, texts in (
        (docs, reference_pages()),
        (FOLDER_OF_SCHEMAS, {f"{file.name}.json": json_schema(file) for file in FILES_OF_A_PROJECT}),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
