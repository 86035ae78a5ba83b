"""What a project sets and nothing reads, or what looks right and has another effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.small_projects import check, clean, model

OWN = "sources: [{{name: lake, tables: [{{name: a, format: iceberg, table: {}, schema: id int}}]}}]\n"
PLAIN = model("")

CASES = [
    (model("tags: a, b"), "bad-value models/a.sql:2:7 the tag 'a, b' has a comma", "tags: [a, b]"),
    ({**PLAIN, "models/b.py": "x"}, "unread-file models/b.py:1:1 files of models end in .sql; models/b.py is not read", "SQL"),
    ({**PLAIN, "models/x/b.sql.bak": "x"},
     "unread-file models/x/b.sql.bak:1:1 files of models end in .sql; models/x/b.sql.bak is not read", "Rename"),
    *(({**PLAIN, "sources/own.yml": OWN.format(name)},
       "source-is-model sources/own.yml:1:33 the source 'lake.a' is the table of the model 'a' (models/a.sql)", "ref('a')")
      for name in ("main.a", "lake.main.a")),
]  # fmt: skip


@pytest.mark.parametrize(("files", "finding", "hint"), CASES)
def test_what_has_no_effect_is_said(tmp_path: Path, files: dict[str, str | bytes], finding: str, hint: str) -> None:
    check(tmp_path, files, finding, hint)


def test_notes_and_tables_of_others_are_fine(tmp_path: Path) -> None:
    files = {**PLAIN, "models/README.md": "x", "models/notes.txt": "x", "sources/own.yml": OWN.format("main.b")}
    assert clean(tmp_path, files).diagnostics == ()
