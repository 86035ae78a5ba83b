"""Small projects that would grow without bound are told so: no crash, no machine out of memory, no hour of work."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.compile.pipeline import worker as local_module
from engine.compile.pipeline import worker_pool
from engine.compile.pipeline.worker_pool import WORTH
from engine.errors import Diagnostic, Location, ProjectError, SetupError
from engine.jinja import template_limits
from engine.jinja.sandbox import Sandbox
from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from engine.project import load_project
from tests.projects import write_files

pytestmark = pytest.mark.slow

PROJECT = "name: shop\ntargets: {dev: {catalog: {type: sqlite, name: lake, path: .engine/lake}, schema: shop}}\n"
TABLE = "/*---\nmaterialized: table\n---*/\n"
SOURCE = "sources:\n  - name: s\n    tables:\n      - {name: e, format: csv, path: x, schema: 'x int, y int, ts timestamp'}\n"
STREAM = "/*---\nstreams: {s.e: {watermark: ts delay 1 minute}}\n---*/\n"
TWICE = "select a.x, b.x as y from {{{{ ref('{0}') }}}} a join {{{{ ref('{0}') }}}} b on a.x = b.x"


def compiled(root: Path, files: dict[str, str]):
    (root / "project.yml").write_text(PROJECT)
    write_files(root, files)
    return compile_project(load_project(root), target="dev").manifest


def codes(root: Path, files: dict[str, str]) -> list[str]:
    return [d.code for d in compiled(root, files).errors]


def chain(kind: str, body: str = TWICE, levels: int = 30) -> dict[str, str]:
    files = {"models/m0.sql": f"/*---\nmaterialized: {kind}\n---*/\nselect 1 as x"}
    for i in range(1, levels):
        files[f"models/m{i}.sql"] = f"/*---\nmaterialized: {kind}\n---*/\n{body.format(f'm{i - 1}')}"
    return {**files, "models/last.sql": f"{TABLE}select x from {{{{ ref('m{levels - 1}') }}}}"}


def ctes(body: str, first: str = "select 1 as x, 2 as y", levels: int = 31) -> str:
    steps = [f"c{i} as ({body.format(f'c{i - 1}')})" for i in range(1, levels)]
    return f"with c0 as ({first}), {', '.join(steps)} select * from c{levels - 1}"


@pytest.mark.parametrize(
    "body", [TWICE, "select * from {{{{ ref('{0}') }}}} union all select * from {{{{ ref('{0}') }}}}"]
)
def test_ephemeral_models_that_double_are_an_error_at_the_one_that_is_too_large(tmp_path, body):
    found = compiled(tmp_path, chain("ephemeral", body)).errors
    assert [d.code for d in found] == ["sql-too-large"]
    assert found[0].location is not None
    assert found[0].location.file == "models/m15.sql"
    assert "characters" in found[0].message
    assert "a table or a view" in found[0].hint


@pytest.mark.parametrize("kind", ["view", "table"])
def test_stored_models_may_read_each_other_twice_thirty_times_over(tmp_path, kind):
    assert codes(tmp_path, chain(kind)) == []


@pytest.mark.parametrize(
    "body",
    [
        "select a.x + b.x as x, a.ts from {0} a join {0} b on a.x = b.x and a.ts = b.ts",
        "select * from {0} union all select * from {0}",
    ],
)
def test_ctes_of_a_stream_that_double_are_an_error(tmp_path, body):
    sql = ctes(body, "select x, ts from {{{{ source('s', 'e') }}}}".replace("{{{{", "{{").replace("}}}}", "}}"))
    assert codes(tmp_path, {"sources/s.yml": SOURCE, "models/a.sql": STREAM + sql}) == ["sql-too-large"]


def test_ctes_of_a_table_that_are_read_twice_are_none(tmp_path):
    sql = ctes("select a.x + b.x as x, a.y + b.y as y from {0} a join {0} b on a.x = b.x")
    assert codes(tmp_path, {"models/a.sql": TABLE + sql}) == []


def test_stars_over_stars_that_double_the_columns_are_an_error(tmp_path):
    assert codes(tmp_path, {"models/a.sql": TABLE + ctes("select p.*, q.* from {0} p cross join {0} q")}) == [
        "sql-too-large"
    ]


def test_types_that_double_become_unknown(tmp_path):
    manifest = compiled(
        tmp_path, {"models/a.sql": TABLE + ctes("select struct(x, x) as x from {0}", "select 1 as x", 41)}
    )
    assert not manifest.errors
    assert manifest.nodes["model.a"].result[0].type is None if hasattr(manifest.nodes["model.a"], "result") else True


def test_types_that_double_from_model_to_model_become_unknown(tmp_path):
    files = {"models/m0.sql": f"{TABLE}select 1 as x"}
    for i in range(1, 41):
        files[f"models/m{i}.sql"] = f"{TABLE}select struct(x as a, x as b) as x from {{{{ ref('m{i - 1}') }}}}"
    assert codes(tmp_path, files) == []


TEMPLATES = {
    "a macro that calls itself twice": "{% macro d(n) %}{% if n > 0 %}{{ d(n-1) }}{{ d(n-1) }}{% endif %}{% endmacro %}'{{ d(40) }}'",
    "text times a number": "'{{ 'x' * 10**9 }}'",
    "a number times text": "'{{ 10**9 * 'x' }}'",
    "a width": "'{{ '%1000000000d' % 1 }}'",
    "a width as a value": "'{{ '%*d' % (1000000000, 1) }}'",
    "a precision": "'{{ '%.1000000000f' % 1.0 }}'",
    "format": "'{{ '{:1000000000d}'.format(1) }}'",
    "format with a width inside": "'{{ '{:{w}d}'.format(1, w=1000000000) }}'",
    "format_map": "'{{ '{a:1000000000d}'.format_map({'a': 1}) }}'",
    "ljust": "'{{ 'x'.ljust(10**9) }}'",
    "rjust": "'{{ 'x'.rjust(10**9) }}'",
    "center": "'{{ 'x'.center(10**9) }}'",
    "zfill": "'{{ 'x'.zfill(10**9) }}'",
    "expandtabs": r"'{{ '\t'.expandtabs(10**9) }}'",
    "filter center": "'{{ 'x' | center(1000000000) }}'",
    "filter indent": r"'{{ 'x\n' | indent(1000000000) }}'",
    "filter format": "'{{ '%1000000000d' | format(1) }}'",
    "filter batch": "'{{ [1] | batch(1000000000, 1) | list }}'",
    "filter slice": "'{{ [1] | slice(1000000000) | list }}'",
    "filter join": "'{{ range(90000) | list | join('x' * 90000) }}'",
    "filter replace": "'{{ ('x' * 90000) | replace('x', 'y' * 90000) }}'",
    "filter sum": "'{{ ([[1] * 1000000] * 100) | sum(start=[]) | length }}'",
    "a list times a number": "'{{ ([1] * 10**9) | length }}'",
    "a power": "{{ 2 ** 100000000 > 1 }}",
    "a product": "{% set ns = namespace(x=7) %}{% for i in range(40) %}{% set ns.x = ns.x * ns.x %}{% endfor %}1",
    "loops in loops": "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}1",
    "loops over a list": "{% set l = range(90000) | list %}{% for i in l %}{% for j in l %}{% endfor %}{% endfor %}1",
    "text that doubles": "{% set ns = namespace(x='x') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}1",
    "text that doubles by +": "{% set ns = namespace(x='x') %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}1",
    "a list that doubles": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}1",
    "a list that extends itself": "{% set l = [1] %}{% for i in range(40) %}{% do l.extend(l) %}{% endfor %}1",
    "a list of itself": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "a list of itself, joined": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ 'a' ~ ns.x }}",
    "a list of itself, as JSON": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
    "a list of itself, as JSON by a function": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ tojson(ns.x) }}",
    "a list of itself, in config": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ config(meta={'a': ns.x}) }}1",
    "replace": "{% set x = ('x' * 90000).replace('x', 'x' * 90000) %}1",
    "join": "{% set x = ('x' * 90000).join('x' * 90000) %}1",
    "printed in a loop": "{% for i in range(90000) %}{{ 'x' * 90000 }}{% endfor %}1",
}  # fmt: skip


@pytest.mark.nightly_cases(
    "filter slice",
    "filter sum",
    "a list of itself, joined",
    "a list of itself, as JSON by a function",
    "a list of itself, in config",
)
@pytest.mark.parametrize("sql", TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_that_makes_too_much_is_an_error(tmp_path, monkeypatch, sql):
    # A third of the processor time that there is: `test_a_template_that_takes_too_long_ends_alone` has all of it.
    monkeypatch.setattr(template_limits, "SECONDS", 1.0)
    monkeypatch.setattr(template_limits, "_LAST_SECONDS", 2)
    try:
        found = compiled(tmp_path, {"models/a.sql": f"{TABLE}select {sql} as a"}).errors
    except ProjectError as error:
        # One long call of Python's own code ends with its process, and takes the rest of the project with it.
        found = error.diagnostics
    assert [d.code for d in found] == ["template-too-large"]
    assert found[0].location is not None
    assert found[0].location.file == "models/a.sql"


# What is counted gives the same words on every machine, before the limits of the operating system are reached.
COUNTED = {
    "rounds of loops": (
        "{% for i in range(720) %}{% for j in range(720) if j < 0 %}{% endfor %}{% endfor %}select 1 as a",
        "the template takes more than 500,000 calls and rounds of loops",
    ),
    "calls": (
        "{% for i in range(510) %}{% for j in range(510) if range(1) == 1 %}{% endfor %}{% endfor %}select 1 as a",
        "the template takes more than 500,000 calls and rounds of loops",
    ),
    "texts that are thrown away": (
        "{% macro m() %}{{ 'x' * 1900000 }}{% endmacro %}{% for i in range(12) %}{% set x = m() %}{% endfor %}select 1 as a",
        "the template creates a text of more than 2,000,000 characters",
    ),
    "parts of a text": (
        "{% for i in range(3) %}{{ 'x' * 900000 }}{% endfor %}select 1 as a",
        "the template creates a text of more than 2,000,000 characters",
    ),
    "items of a list": (
        "{% set ns = namespace(x=[1]) %}{% for i in range(30) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "the template creates a text of more than 2,000,000 characters",
    ),
}


@pytest.mark.parametrize(("sql", "words"), COUNTED.values(), ids=COUNTED)
def test_what_is_counted_is_told_in_the_same_words_everywhere(tmp_path, sql, words):
    (found,) = compiled(tmp_path, {"models/a.sql": sql}).errors
    assert (found.code, found.message) == ("template-too-large", words)


def test_a_template_that_takes_too_long_ends_alone(tmp_path):
    """At its line, beside what is wrong with other models: the process that renders all of them goes on."""
    slow = "select\n{% for i in range(3000) if (range(99999) | sort | length) == 1 %}{% endfor %}1 as a"
    found = compiled(tmp_path, {"models/a.sql": slow, "models/b.sql": "select * from {{ ref('gone') }}"}).errors
    assert [(d.code, d.location.file, d.location.line) for d in found if d.location] == [
        ("template-too-large", "models/a.sql", 2),
        ("unknown-ref", "models/b.sql", 1),
    ]
    assert "3 seconds of processor time" in found[0].message


def test_a_loop_that_ends_between_two_lines_ends_at_its_own():
    """A signal may come where the function that Jinja makes of a loop is resumed, which is in no line of the template."""
    sandbox = Sandbox({})
    sandbox.render("{{ 1 }}", "models/a.sql")
    resumed = compile("def resumed(): 1 / 0\n\nresumed()", "models/a.sql", "exec")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(resumed)
    assert [frame.line for frame in sandbox._frames(raised.tb)] == [3]


def test_ordinary_templates_are_not_near_a_bound(tmp_path):
    sql = (
        "{% set names = [] %}{% for i in range(2000) %}{% do names.append('c' ~ i) %}{% endfor %}"
        "{{ '%05d' % 7 }} as z, {{ '{:>8}'.format(1) }} as y, {{ 2 ** 62 }} as w, '{{ '-' * 80 }}' as v, "
        "{% for name in names %}{{ loop.index }} as {{ name }}{{ ',' if not loop.last }} {% endfor %}"
    )
    assert codes(tmp_path, {"models/a.sql": f"{TABLE}select {sql}"}) == []


DEEP = {
    "brackets": "(" * 5000 + "1" + ")" * 5000,
    "case": "case when true then " * 3000 + "1" + " end" * 3000,
    "not": "not " * 20000 + "true",
    "minus": "- " * 20000 + "1",
    "types": "cast(null as " + "array<" * 5000 + "int" + ">" * 5000 + ")",
    "fields": "a" + ".b" * 20000,
    "plus": "1 + " * 20000 + "1",
    "and": "true and " * 20000 + "true",
    "concat": "'a' || " * 20000 + "'b'",
    "tags": "{{ " + "(" * 2000 + "1" + ")" * 2000 + " }}",
    "blocks": "{% if 1 %}" * 1000 + "1" + "{% endif %}" * 1000,
    "sums in Jinja": "{{ " + "1+" * 20000 + "1 }}",
    "filters": "{{ 1" + "|int" * 5000 + " }}",
    "interval": "interval '" + "1 day " * 50000 + "'",
    "a long interval": "interval '" + "9" * 5000 + "' day",
    "a long number": "9" * 5000,
    "a long decimal": "0." + "9" * 5000,
    "a long number in Jinja": "{{ " + "9" * 5000 + " }}",
}


@pytest.mark.nightly_cases("plus", "concat", "sums in Jinja")
@pytest.mark.parametrize("sql", DEEP.values(), ids=DEEP)
def test_deep_and_long_expressions_end_in_a_finding_or_compile(tmp_path, sql):
    allowed = {"sql-too-deep", "jinja-error", "sql-syntax", "unknown-column", "undeclared-relation"}
    assert set(codes(tmp_path, {"models/a.sql": f"{TABLE}select {sql} as x from (select 1 as a) t"})) <= allowed


UNION = " union all select 1 as a"


@pytest.mark.parametrize("operation", [UNION, " minus select 1 as a", " intersect select 1 as a"])
def test_more_than_nine_hundred_combined_queries_are_too_deep(tmp_path, operation):
    assert codes(tmp_path, {"models/a.sql": TABLE + "select 1 as a" + operation * 901}) == ["sql-too-deep"]
    assert codes(tmp_path, {"models/a.sql": TABLE + "select 1 as a" + UNION * 5000}) == ["sql-too-deep"]


def test_an_edit_of_nine_hundred_combined_queries_is_planned(tmp_path):
    files = {"models/a.sql": TABLE + "select 1 as a" + UNION * 900}
    before = compiled(tmp_path, files)
    edited = compiled(tmp_path, {"models/a.sql": files["models/a.sql"].replace("1 as a", "2 as a")})
    assert (before.errors, edited.errors) == ((), ())
    writer = LastWriter("0", before.model("a").facts)
    assert compare_model(edited, edited.model("a"), writer).change is Change.REBUILT


def test_combined_queries_are_counted_by_the_brackets_around_them(tmp_path):
    part = f"(select 1 as a{UNION * 500})"
    assert (
        codes(
            tmp_path,
            {"models/a.sql": f"{TABLE}with x as {part}, y as {part} select a from x union all select a from y"},
        )
        == []
    )


def test_a_file_of_more_than_ten_megabytes_is_not_read(tmp_path):
    assert codes(tmp_path, {"models/a.sql": f"{TABLE}select 1 as a -- {'x' * 10_000_000}"}) == ["file-unreadable"]


@pytest.fixture
def several(monkeypatch):
    """Let a process fork although the tests run in threads of another."""
    monkeypatch.setattr(worker_pool.threading, "active_count", lambda: 1)
    monkeypatch.setattr(worker_pool.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


def hundreds() -> dict[str, str]:
    return {f"models/m{i}.sql": f"{TABLE}select {i} as x" for i in range(WORTH + 10)}


@pytest.mark.skipif(sys.platform != "linux", reason="one process compiles")
@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("sent", [signal.SIGSEGV, signal.SIGKILL])
def test_a_process_that_dies_is_an_error_that_names_the_model(tmp_path, monkeypatch, sent):
    plain, ours = local_module.read_model, os.getpid()

    def dies(text, shared):
        if text.name == "m7" and os.getpid() != ours:
            faulthandler.disable()
            os.kill(os.getpid(), sent)
        return plain(text, shared)

    monkeypatch.setattr(local_module, "read_model", dies)
    with pytest.raises(SetupError) as caught:
        compiled(tmp_path, hundreds())
    assert caught.value.diagnostic.code == "process-ended"
    assert "'m7'" in caught.value.diagnostic.message


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("number", [3, WORTH + 10])
@pytest.mark.parametrize("kind", [MemoryError, RecursionError])
def test_memory_that_runs_out_is_an_error_that_names_the_model(tmp_path, monkeypatch, number, kind):
    plain = local_module.finish_model

    def fails(read, *rest, **more):
        if read.face.id == "model.m1":
            raise kind
        return plain(read, *rest, **more)

    monkeypatch.setattr(local_module, "finish_model", fails)
    files = dict(list(hundreds().items())[:number])
    with pytest.raises(ProjectError) as caught:
        compiled(tmp_path, files)
    assert caught.value.diagnostic.code == "model-too-large"
    assert caught.value.diagnostic.node == "m1"


def test_errors_go_from_process_to_process_with_all_they_carry():
    error = ProjectError("sql-syntax", "one", "do", location=Location("a.sql", 3, 4), node="a")
    error.diagnostics = (*error.diagnostics, Diagnostic("sql-syntax", "two"))
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, ProjectError)
    assert again.diagnostics == error.diagnostics
