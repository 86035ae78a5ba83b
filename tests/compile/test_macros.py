"""Macros: the engine's own as the handbook shows them, the project's, and those of packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.compile.nodes.macro_docs import macros_used
from tests.fixtures import Pair, read_pairs
from tests.lab import REPOSITORY
from tests.project.small_projects import FROM, clean, findings, line, lines, model, only

CASES = read_pairs(Path(__file__).parent / "fixtures" / "macros")
EXAMPLE = re.compile(r"```sql\n(.*?)```\n\nbecomes\n\n```sql\n(.*?)```", re.DOTALL)
HANDBOOK = (REPOSITORY / "docs" / "macros.md").read_text(encoding="utf-8")
EXAMPLES = EXAMPLE.findall(HANDBOOK)


def selected(sql: str) -> dict[str, str | bytes]:
    return {"models/a.sql": f"select\n  {sql}\n{FROM}"}


@pytest.mark.parametrize(("given", "expected"), EXAMPLES, ids=[given.split("{{ ")[1][:20] for given, _ in EXAMPLES])
def test_an_example_of_the_handbook(given, expected, tmp_path):
    assert clean(tmp_path, {"models/a.sql": given}).model("a").sql.strip() == expected.strip()


def test_every_macro_is_in_the_handbook():
    text = (REPOSITORY / "engine" / "macros" / "columns.sql").read_text(encoding="utf-8")
    names = re.findall(r"macro ([a-z]\w*)", text)
    assert [name for name in names if f"### {name}\n" not in HANDBOOK] == []
    assert len(EXAMPLES) >= len(names)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_macro_becomes(case: Pair, tmp_path):
    assert clean(tmp_path, model(case.parts["header"], case.given)).model("a").sql.strip() == case.expected


WRONG = [
    ("{{ flatten('item', prefix='x_') }}", "compiler-error 2:6 flatten() with a prefix needs the names of the fields"),
    ("{{ surrogate_key([]) }}", "compiler-error 2:6 surrogate_key() needs columns"),
    ("{{ epoch_to_timestamp('amount', 'weeks') }}", "compiler-error 2:6 epoch_to_timestamp() counts"),
    ("{{ parse_json('id', 'array<int>') }}", "compiler-error 2:6 parse_json() takes a list of fields"),
    ("{{ parse_json('id', 'a int', on_error='drop') }}", "compiler-error 2:6 parse_json() has on_error='keep'"),
    ("{{ any_timestamp('id', []) }}", "compiler-error 2:6 any_timestamp() needs formats"),
    ("{{ star(except=['nope']) }}", "unknown-column 2:3 column 'nope' not found"),
    ("{{ set_type({'amuont': 'int'}) }}", "unknown-column 2:3 column 'amuont' not found"),
    ("{{ star(prefix='x_') }}", "jinja-error 2:6 the template failed: macro 'star' takes no keyword argument 'prefix'"),
    ("{{ surogate_key(['id']) }}", "jinja-undefined 2:6 'surogate_key' is undefined"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "finding"), WRONG)
def test_a_wrong_call_of_the_engines_macros_stands_at_the_call(sql, finding, tmp_path):
    found = only(findings(tmp_path, selected(sql)))
    code, place, message = finding.split(" ", 2)
    assert line(found).startswith(f"{code} models/a.sql:{place} {message}")


# what wins

KIT = "packages/kit/macros/kit.sql"


def test_the_projects_macro_wins_over_the_engines(tmp_path):
    files = {"macros/m.sql": "{% macro safe_cast(a, b) %}{{ engine.safe_cast(a, b) }} as {{ a }}_{% endmacro %}"}
    assert (
        clean(tmp_path, {**files, **selected("{{ safe_cast('id', 'int') }}")})
        .model("a")
        .sql.startswith("select\n  try_cast(id as int) as id_")
    )


def test_a_package_sees_its_own_macros_first_then_the_projects_then_the_engines(tmp_path):
    files = {
        KIT: "{% macro one() %}{{ two() }}, {{ three() }}, {{ safe_cast('id', 'int') }} as c{% endmacro %}\n"
        "{% macro two() %}1 as two{% endmacro %}",
        "macros/m.sql": "{% macro two() %}never{% endmacro %}{% macro three() %}3 as three{% endmacro %}",
    }
    sql = clean(tmp_path, {**files, **selected("{{ kit.one() }}")}).model("a").sql
    assert sql.startswith("select\n  1 as two, 3 as three, try_cast(id as int) as c")


def test_a_macro_of_a_package_needs_its_name(tmp_path):
    files = {KIT: "{% macro cents(c) %}{{ c }} * 100{% endmacro %}"}
    found = only(findings(tmp_path, {**files, **selected("{{ cents('amount') }}")}))
    assert line(found) == "jinja-undefined models/a.sql:2:6 'cents' is undefined"


def test_packages_lie_where_the_paths_say(tmp_path):
    files = {
        "project.yml": "name: shop\npaths: {packages: lib}\ntargets: {dev: {catalog: {type: sqlite}, schema: main}}\n",
        "lib/kit/macros/deep/m.jinja": "{% macro cents(c) %}{{ c }} * 100{% endmacro %}",
    }
    assert "amount * 100" in clean(tmp_path, {**files, **selected("{{ kit.cents('amount') }} as cents")}).model("a").sql


def test_a_package_may_have_the_name_of_dbts(tmp_path):
    files = {"packages/dbt_utils/macros/m.sql": "{% macro group_by(n) %}group by {{ n }}{% endmacro %}"}
    sql = f"select id {FROM} {{{{ dbt_utils.group_by(1) }}}}"
    assert clean(tmp_path, {**files, "models/a.sql": sql}).model("a").sql.endswith("group by 1")


def test_a_macro_with_an_underscore_before_its_name(tmp_path):
    files = {"macros/m.sql": "{% macro _mine() %}1 as a{% endmacro %}"}
    assert clean(tmp_path, {**files, **selected("{{ _mine() }}")}).model("a").sql.startswith("select\n  1 as a")


# what clashes

CLASHES = [
    ({"macros/a.sql": "{% macro x() %}{% endmacro %}", "macros/b.sql": "\n\n {% macro x() %}{% endmacro %}"},
     "duplicate-name macros/b.sql:3:11 two macros have the name 'x': macros/a.sql:1:10 and macros/b.sql:3:11"),
    ({"macros/a.sql": "{% macro x() %}{% endmacro %}\n{% macro x(a) %}{% endmacro %}"},
     "duplicate-name macros/a.sql:2:10 two macros have the name 'x': macros/a.sql:1:10 and macros/a.sql:2:10"),
    ({"packages/kit/macros/a.sql": "{% macro x() %}{% endmacro %}", KIT: "{% macro x() %}{% endmacro %}"},
     f"duplicate-name {KIT}:1:10 two macros have the name 'x': packages/kit/macros/a.sql:1:10 and {KIT}:1:10"),
    ({"macros/a.sql": "{% macro ref(x) %}{% endmacro %}"},
     "duplicate-name macros/a.sql:1:10 the macro 'ref' has the name of a built-in"),
    ({"macros/a.sql": "{% macro generate_schema_name(a, b) %}{% endmacro %}"},
     "duplicate-name macros/a.sql:1:10 the macro 'generate_schema_name' has the name of a built-in"),
    ({"macros/a.sql": "{% macro kit() %}{% endmacro %}", KIT: "{% macro x() %}{% endmacro %}"},
     f"duplicate-name {KIT}:1:1 the macro package 'kit' has the name of a macro or of a built-in"),
    ({"packages/var/macros/a.sql": "{% macro x() %}{% endmacro %}"},
     "duplicate-name packages/var/macros/a.sql:1:1 the macro package 'var' has the name of a macro or of a built-in"),
    ({"packages/engine/macros/a.sql": "{% macro x() %}{% endmacro %}"},
     "bad-name packages/engine:1:1 'engine' is not a valid name of a macro package"),
    ({"packages/My-Kit/macros/a.sql": "{% macro x() %}{% endmacro %}"},
     "bad-name packages/My-Kit:1:1 'My-Kit' is not a valid name of a macro package"),
    ({"packages/kit/kit.sql": "{% macro x() %}{% endmacro %}"},
     "bad-value packages/kit:1:1 'kit' is not a macro package: it has no folder macros/"),
    ({"packages/kit.sql": "{% macro x() %}{% endmacro %}"},
     "bad-value packages/kit.sql:1:1 'kit.sql' is not a macro package: it has no folder macros/"),
    ({"packages.yml": "packages: []\n"}, "packages-file packages.yml:1:1 packages.yml is dbt syntax"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "finding"), CLASHES, ids=lambda value: str(value)[:50])
def test_names_that_clash(files, finding, tmp_path):
    found = only(findings(tmp_path, {**files, **selected("id")}))
    assert line(found) == finding
    assert found.hint


def test_a_folder_that_is_linked_is_not_followed(tmp_path):
    (tmp_path / "elsewhere" / "macros").mkdir(parents=True)
    root = tmp_path / "project"
    (root / "packages").mkdir(parents=True)
    (root / "packages" / "kit").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "macros" / "a.sql").write_text("{% macro x() %}{% endmacro %}")
    found = only(findings(root, selected("id")))
    assert (found.code, str(found.location)) == ("path-outside", "packages/kit/macros:1:1")


# where errors stand


def test_an_error_deep_in_a_package_names_all_calls(tmp_path):
    files = {
        KIT: "{% macro outer() %}\n  {{ inner(1) }}{% endmacro %}\n{% macro inner(x) %}\n  {{ wrod }}{% endmacro %}",
        "macros/m.sql": "{% macro mine() %}{{ kit.outer() }}{% endmacro %}",
    }
    found = only(findings(tmp_path, {**files, **selected("{{ mine() }}")}))
    assert line(found) == f"jinja-undefined {KIT}:4:6 'wrod' is undefined"
    assert found.hint.endswith(f"Called from {KIT}:2:6, from macros/m.sql:1:26, from models/a.sql:2:6.")


def test_an_error_in_a_block_that_a_macro_calls(tmp_path):
    files = {"macros/m.sql": "{% macro m() %}\n {{ caller() }}{% endmacro %}"}
    found = only(
        findings(
            tmp_path, {**files, "models/a.sql": f"select {{% call m() %}}\n  {{{{ wrod }}}}{{% endcall %}} {FROM}"}
        )
    )
    assert line(found) == "jinja-undefined models/a.sql:2:6 'wrod' is undefined"
    assert found.hint.endswith("Called from models/a.sql:1:16.")


@pytest.mark.slow
def test_a_macro_that_calls_itself_for_ever(tmp_path):
    files = {"macros/m.sql": "{% macro m() %}\n  {{ m() }}{% endmacro %}"}
    found = only(findings(tmp_path, {**files, **selected("{{ m() }}")}))
    assert line(found) == "jinja-error macros/m.sql:2:6 the template is nested too deeply"
    assert len(found.hint) < 200


def test_a_package_that_cannot_be_read_is_reported_once(tmp_path):
    files = {
        KIT: "{% macro x() %}{{ 1 + }}{% endmacro %}{% macro y() %}{% endmacro %}",
        "models/b.sql": "select {{ kit.y() }}",
    }
    assert lines(findings(tmp_path, {**files, **selected("{{ kit.x() }}")})) == [
        f"jinja-syntax {KIT}:1:23 Jinja: unexpected '}}}}'"
    ]


def test_a_package_without_such_a_macro(tmp_path):
    files = {KIT: "{% macro cents() %}{% endmacro %}"}
    found = only(findings(tmp_path, {**files, **selected("{{ kit.cent() }}")}))
    assert line(found) == "unknown-macro models/a.sql:2:6 the macro package 'kit' has no macro 'cent'"
    assert found.hint == "Did you mean 'cents'?"


# test kinds of packages

POSITIVE = (
    "{% macro test_positive(model, column_name) %}select * from {{ model }} where {{ column_name }} <= 0{% endmacro %}"
)


@pytest.mark.parametrize("form", ["kit.positive", "{kit.positive: {severity: warn}}"])
def test_a_test_kind_of_a_package(form, tmp_path):
    files = {
        KIT: POSITIVE,
        "models/a.sql": f"/*---\ncolumns: {{amount: {{tests: [{form}]}}}}\n---*/\nselect amount {FROM}",
    }
    (test,) = clean(tmp_path, files).tests
    assert (test.name, test.kind) == ("kit_positive_a_amount", "kit.positive")
    assert test.sql == "select * from `lake`.`main`.`a` where amount <= 0"


WRONG_TESTS = [
    ("kit.positve", "unknown-macro models/a.sql:2:28 test 'kit.positve' not found", "Did you mean 'kit.positive'?"),
    ("positive", "unknown-macro models/a.sql:2:28 test 'positive' not found", "Did you mean 'kit.positive'"),
    ("kit.a.b", "bad-name models/a.sql:2:28 'kit.a.b' is not a valid test name", ""),
    ("kit.broken", "jinja-undefined models/a.sql:2:28 the test 'kit.broken' cannot be rendered: 'wrod' is undefined",
     f"In {KIT}:2:73."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "finding", "hint"), WRONG_TESTS)
def test_a_test_kind_that_cannot_be_made(kind, finding, hint, tmp_path):
    files = {
        KIT: POSITIVE
        + "\n{% macro test_broken(model, column_name) %}select * from {{ model }} {{ wrod }}{% endmacro %}",
        "models/a.sql": f"/*---\ncolumns: {{amount: {{tests: [{kind}]}}}}\n---*/\nselect amount {FROM}",
    }
    found = only(findings(tmp_path, files))
    assert line(found) == finding
    assert hint in found.hint


def test_macros_of_packages_are_told_by_the_names_that_models_call(tmp_path):
    files = {
        KIT: "{# Cents of an amount. #}\n{% macro cents(column) %}{{ column }} * 100{% endmacro %}",
        "macros/m.sql": "{% macro cents(c) %}{{ kit.cents(c) }}{% endmacro %}",
        **selected("{{ kit.cents('amount') }} as cents"),
    }
    manifest = clean(tmp_path, files)
    assert [(macro.name, macro.file) for macro in manifest.macros] == [("cents", "macros/m.sql"), ("kit.cents", KIT)]
    assert manifest.macros[1].description == "Cents of an amount."
    names = [macro.name for macro in manifest.macros]
    assert macros_used(manifest.model("a").raw_sql, names) == ("kit.cents",)


def test_a_package_is_not_changed_by_a_template(tmp_path):
    files = {KIT: "{% macro macros() %}1 as a{% endmacro %}{% macro name() %}2 as b{% endmacro %}"}
    manifest = clean(tmp_path, {**files, **selected("{{ kit.macros() }}, {{ kit.name() }}")})
    assert manifest.model("a").sql.startswith("select\n  1 as a, 2 as b")
    found = only(findings(tmp_path, {**files, **selected("{% do kit._macros.clear() %}id")}))
    assert (found.code, str(found.location)) == ("jinja-security", "models/a.sql:2:13")
