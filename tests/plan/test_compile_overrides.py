"""A unit test that overrides something is compiled once: the next command finds it, without loading what compiles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TEST = """\
unit_tests:
  - name: limited
    model: m
    overrides: {{vars: {{most: {0}}}}}
    given: []
    expect: {{rows: []}}
"""
ASK = """\
import json, sys
from engine.api import Project
project = Project(sys.argv[1])
compiled = project.compile()
test, = compiled.manifest.unit_tests
model = project._versions(compiled).manifest_for(test).model("m")
print(json.dumps([model.sql.split()[-1], "sqlglot" in sys.modules]))
"""


def ask(root: Path) -> list[object]:
    done = subprocess.run([sys.executable, "-c", ASK, str(root)], capture_output=True, text=True, check=True)
    found: list[object] = json.loads(done.stdout)
    return found


def test_the_second_command_compiles_nothing(tmp_path: Path) -> None:
    for name, text in {
        "project.yml": "name: p\nvars: {most: 1}\n",
        "models/m.sql": "select 1 as id limit {{ var('most') }}",
        "tests/units.yml": TEST.format(7),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert ask(tmp_path) == ["7", True]
    assert ask(tmp_path) == ["7", False]
    (tmp_path / "tests/units.yml").write_text(TEST.format(8))
    assert ask(tmp_path)[0] == "8"
    (tmp_path / "models/m.sql").write_text("select 2 as id limit {{ var('most') + 1 }}")
    assert ask(tmp_path) == ["9", True]
    assert ask(tmp_path) == ["9", False]
