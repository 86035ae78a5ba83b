"""Merge keys of YAML: one error that says what to write, in every file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.small_projects import ORDERS, PROJECT, findings, line

HEADER = "/*---\ncolumns: &c\n  id: {description: the key}\nmeta:\n  <<: *c\n---*/\n"
FILES = {
    "models/a.sql": HEADER + ORDERS,
    "models/a.yml": "models:\n  - name: a\n    meta: &m {x: 1}\n  - <<: *m\n    name: b\n",
    "project.yml": PROJECT + "vars: &v {x: 1}\nmodels:\n  <<: *v\n",
}
PLACES = {"models/a.sql": "5:3", "models/a.yml": "4:5", "project.yml": f"{PROJECT.count(chr(10)) + 3}:3"}


@pytest.mark.parametrize("file", FILES)
def test_a_merge_key_is_one_error(tmp_path: Path, file: str) -> None:
    found = findings(tmp_path, {"models/a.sql": ORDERS, file: FILES[file]})
    assert [line(one) for one in found] == [f"yaml-syntax {file}:{PLACES[file]} YAML: merge keys (<<) are not read"]
    assert "+tags" in (found[0].hint or "")


def test_a_quoted_key_is_a_key(tmp_path: Path) -> None:
    assert findings(tmp_path, {"models/a.sql": f"/*---\nmeta: {{'<<': 1}}\n---*/\n{ORDERS}"}) == ()
