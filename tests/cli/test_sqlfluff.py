"""sqlfluff works on a project with the configuration that `engine init` writes, and on the example."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.commands.init_command import TEMPLATES, create_project
from tests.lab import REPOSITORY

pytestmark = pytest.mark.slow

STARTER = REPOSITORY / "engine" / "cli" / "starter" / "common" / "sqlfluff"
EVERYTHING = """/*---
streams: {orders: {watermark: ordered_at delay 10 minutes}}
windows: {hour: "tumbling(ordered_at, 1 hour)"}
---*/
{{ config(tags=['x']) }}
select
    hour.start,
    item.name,
    {{ surrogate_key(['a', 'b']) }} as order_key,
    {{ safe_cast('x', 'int') }} as quantity,
    {{ parse_json('payload', 'a int') }} as parsed,
    {{ epoch_to_timestamp('t') }} as seen_at,
    {{ any_timestamp('t', ['yyyy']) }} as said_at,
    {{ flatten('item') }},
    '{{ target.name }}' as target_name,
    '{{ env_var("USER", "me") }}' as author,
    {{ var('days', 3) }} as kept_days,
    {{ star(from=ref('orders'), except=['a']) }}
from {{ ref('orders') }}
where 1 = 1{% if var('large', false) %} and amount > 1{% endif %}
group by hour, item.name
"""


def lint(folder: Path, *paths: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "sqlfluff", "lint", *(paths or (".",)), "--nocolor", "--disable-progress-bar"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_has_no_finding(template, tmp_path):
    create_project(tmp_path / "shop", template)
    (tmp_path / "shop" / "target").mkdir()
    (tmp_path / "shop" / "target" / "compiled.sql").write_text("select from from")
    code, said = lint(tmp_path / "shop")
    assert code == 0, said


def test_the_example_has_no_finding(tmp_path):
    for folder in ("models", "macros"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    for name in (".sqlfluff", ".sqlfluffignore"):
        shutil.copy(REPOSITORY / name, tmp_path)
    code, said = lint(tmp_path)
    assert code == 0, said


def test_every_built_in_macro_and_name_can_be_parsed(tmp_path):
    create_project(tmp_path / "shop", "files")
    (tmp_path / "shop" / "models" / "m.sql").write_text(EVERYTHING)
    code, said = lint(tmp_path / "shop", "models/m.sql")
    assert "PRS" not in said
    assert "TMP" not in said
    assert code == 0, said


def test_sql_that_is_wrong_is_found(tmp_path):
    create_project(tmp_path / "shop", "files")
    (tmp_path / "shop" / "models" / "m.sql").write_text("/*---\nmaterialized: view\n---*/\nselect from where\n")
    code, said = lint(tmp_path / "shop", "models/m.sql")
    assert code == 1
    assert "PRS" in said


def test_the_examples_configuration_is_that_of_new_projects_with_its_macros():
    own, new = (REPOSITORY / ".sqlfluff").read_text(), STARTER.read_text()
    assert own.replace("load_macros_from_path = macros\n", "") == "".join(
        line for line in new.splitlines(keepends=True) if not line.startswith("# load_macros_from_path")
    )
