"""The fact cache: what it gives is what a cold compilation gives, whatever was edited in between."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from engine.compile import Compiled, compile_project
from engine.compile.artifacts.node_json import digest
from engine.compile.pipeline import incremental, worker
from engine.compile.templates import confined_process
from engine.errors import ProjectError
from engine.project import load_project
from tests.project.small_projects import SOURCES, write

pytestmark = pytest.mark.slow

PROJECT = """\
name: shop
vars: {least: %(least)s}
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: %(schema)s
models:
  +tags: [%(tag)s]
"""
MACRO = "{%% macro money(c) %%}round({{ c }}, %(digits)s){%% endmacro %%}\n"
MODELS = {
    "orders": "/*---\nstreams: {shop.orders: {watermark: ts delay 1 hour}}\n%(header)s\n---*/\n"
    "select id, ts, amount as %(column)s, item.name from {{ source('shop', 'orders') }} where amount > %(number)s",
    "large": "/*---\nstreams: [orders]\ncolumns: {id: {tests: [not_null, {relationships: {to: people, field: id}}]}}\n"
    "%(header)s\n---*/\nselect *, {{ money('%(number)s.5') }} as m from {{ ref('orders') }}",
    "people": "/*---\nmaterialized: table\n%(header)s\n---*/\nselect id, name, '{{ env_var('WHO', 'x') }}' as %(column)s "
    "from {{ source('shop', 'customers') }}",
    "both": "/*---\nstreams: [large]\n%(header)s\n---*/\nselect a.*, b.name as other, {{ var('least') }} as least "
    "from {{ ref('large') }} a join {{ ref('people') }} b on a.id = b.id",
    "counts": "/*---\nstreams: {large: {watermark: ts delay 5 minutes}}\nwindows: {hour: 'tumbling(ts, %(number)s hours)'}\n"
    "%(header)s\n---*/\nselect hour.start as at, count(*) as n from {{ ref('large') }} group by hour",
    "seen": "select max(at) as at, '{{ this }}' as me from {{ ref('counts') }}",
}
HEADERS = ["", "", "tags: [x]", "description: D", "enabled: false", "alias: same", "materialized: view", "nonsense: 1"]
COLUMNS = ["amount", "amount", "price", "id", "from"]
EXTRAS = {
    "models/extra.sql": "select * from {{ ref('both') }}",
    "models/loop.sql": "select * from {{ ref('loop') }}",
    "models/loud.sql": "{{ log('again') }}select 1 as one",
    "models/lost.sql": "select * from {{ ref('nowhere') }}",
    "macros/more.sql": "{% macro money(c) %}{{ c }}{% endmacro %}",
    "sources/bad.yml": "sources: [",
}


class Edits:
    """A project whose parts change at random."""

    def __init__(self, seed: int, root: Path) -> None:
        self.random = random.Random(seed)
        self.root = root
        self.env: dict[str, str] = {}
        self.variables: dict[str, int] = {}
        self.project = {"least": 1, "schema": "main", "tag": "a"}
        self.models = {name: {"header": "", "column": "amount", "number": 1} for name in MODELS}
        self.files = {f"models/{name}.sql": self.text(name) for name in MODELS}
        self.files |= {"project.yml": PROJECT % self.project, "macros/m.sql": MACRO % {"digits": 2}}
        self.files["sources/shop.yml"] = SOURCES
        write(root, self.files)

    def text(self, name: str) -> str:
        return MODELS[name] % self.models[name]

    def edit(self) -> None:
        chance = self.random
        kind = chance.choice(["model"] * 6 + ["project", "macro", "source", "env", "vars", "extra", "gone", "touch"])
        if kind == "model":
            name = chance.choice(list(MODELS))
            key = chance.choice(["header", "column", "number"])
            self.models[name][key] = {"header": HEADERS, "column": COLUMNS, "number": [1, 2, 3]}[key][
                chance.randrange(3 if key == "number" else 5)
            ]
            self.put(f"models/{name}.sql", self.text(name))
        elif kind == "project":
            key = chance.choice(list(self.project))
            self.project[key] = chance.choice({"least": [1, 2], "schema": ["main", "b"], "tag": ["a", "c"]}[key])
            self.put("project.yml", PROJECT % self.project)
        elif kind == "macro":
            self.put("macros/m.sql", MACRO % {"digits": chance.choice([0, 1, 2])})
        elif kind == "source":
            self.put("sources/shop.yml", SOURCES.replace("name string", chance.choice(["name string", "name int"])))
        elif kind == "env":
            self.env = chance.choice([{}, {"WHO": "a"}, {"WHO": "b"}, {"OTHER": "c"}])
        elif kind == "vars":
            self.variables = chance.choice([{}, {"least": 5}])
        elif kind == "extra":
            name = chance.choice(list(EXTRAS))
            self.put(name, EXTRAS[name])
        elif kind == "gone":
            (self.root / chance.choice(list(EXTRAS))).unlink(missing_ok=True)

    def put(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def compiled(self, cached: Path | None) -> Compiled:
        return compile_project(load_project(self.root), variables=self.variables, env=self.env, cached=cached)


def shown(result: Compiled) -> dict[str, object]:
    manifest = result.manifest
    return {
        "nodes": {i: msgspec.json.decode(msgspec.json.encode(node)) for i, node in manifest.nodes.items()},
        "order": manifest.order,
        "found": [d.to_dict() for d in manifest.diagnostics],
    }


@pytest.mark.nightly_except("0")
@pytest.mark.parametrize("seed", range(3))
def test_a_cached_result_is_a_cold_one_after_any_edits(tmp_path, seed):
    edits = Edits(seed, tmp_path / "project")
    cached = tmp_path / "kept"
    errors = 0
    for step in range(20):
        if step:
            edits.edit()
        cold_result = shown(edits.compiled(None))
        assert shown(edits.compiled(cached)) == cold_result, step
        errors += any(d["level"] == "error" for d in cold_result["found"])
    assert 0 < errors < 20, "the edits make both sound and faulty projects"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The models that are read and finished, and how often anything is compiled at all."""
    seen: dict[str, list[str]] = {"read": [], "finished": []}
    # In another process nothing would be counted here.
    monkeypatch.setattr(confined_process, "run_confined", lambda work, *arguments: work(*arguments))
    for name, key in (("read_model", "read"), ("finish_model", "finished")):
        real = getattr(worker, name)

        def counting(first, *args, _real=real, _key=key, **kwargs):
            seen[_key].append(getattr(first, "name", None) or first.file.name)
            return _real(first, *args, **kwargs)

        monkeypatch.setattr(worker, name, counting)
    return seen


def test_only_what_an_edit_reaches_is_compiled_again(tmp_path, counted):
    edits = Edits(1, tmp_path / "project")
    cached = tmp_path / "kept"
    edits.compiled(cached)
    assert set(counted["read"]) == set(MODELS)

    def compiled_after(name: str, old: str, new: str) -> tuple[list[str], list[str]]:
        edits.put(name, (edits.root / name).read_text().replace(old, new))
        counted["read"].clear()
        counted["finished"].clear()
        edits.compiled(cached)
        return counted["read"], sorted(counted["finished"])

    assert compiled_after("models/people.sql", "x", "x") == ([], [])
    assert compiled_after("models/people.sql", "select id", "select  id") == (["people"], ["people"])
    _, finished = compiled_after("models/people.sql", "select  id", "select 1 as one, id")
    assert finished == ["both", "large", "people"], "a join reads its columns, a test of `large` names it"
    _, finished = compiled_after("sources/shop.yml", "price double", "price float")
    assert finished == ["orders"], "nobody reads item.price further on"


def test_an_unchanged_project_is_not_compiled(tmp_path, monkeypatch):
    edits = Edits(1, tmp_path / "project")
    before = shown(edits.compiled(tmp_path / "kept"))
    monkeypatch.setattr(incremental, "compile_models", None)
    assert shown(edits.compiled(tmp_path / "kept")) == before


@pytest.mark.parametrize("damage", [b"", b"{}", b"[", b'{"shared": 1}', b"\xff\xfe"])
def test_a_damaged_cache_is_compiled_over(tmp_path, damage):
    edits = Edits(1, tmp_path / "project")
    before = shown(edits.compiled(tmp_path / "kept"))
    (file,) = (tmp_path / "kept").rglob("*.cache")
    file.write_bytes(damage)
    assert shown(edits.compiled(tmp_path / "kept")) == before


def test_a_cache_with_a_code_of_another_version_is_compiled_over(tmp_path):
    edits = Edits(1, tmp_path / "project")
    edits.put("models/people.sql", "select from where")
    before = codes(edits, tmp_path)
    (file,) = (tmp_path / "kept").rglob("*.cache")
    code, other = f'"{before[0]}"'.encode(), f'"{"x" * len(before[0])}"'.encode()
    whole = file.read_bytes()
    assert code in whole
    file.write_bytes(whole.replace(code, other))
    assert codes(edits, tmp_path) == before


def test_no_secret_and_no_value_of_the_environment_is_kept(tmp_path):
    edits = Edits(1, tmp_path / "project")
    settings = (PROJECT % edits.project).replace(".engine/lake", "\"{{ env_var('LAKE') }}\"")
    conf = "    spark: {conf: {x.password: \"{{ env_var('ENGINE_SECRET_X') }}\"}}\nmodels:"
    edits.put("project.yml", settings.replace("models:", conf))
    edits.env = {"LAKE": "in-the-lake", "ENGINE_SECRET_X": "hunter22"}
    result = edits.compiled(tmp_path / "kept")
    assert result.target.catalog.path.name == "in-the-lake"
    assert result.target.spark_conf() == {"x.password": "hunter22"}
    (file,) = (tmp_path / "kept").rglob("*.cache")
    for text in (b"hunter22", b"in-the-lake", b"ENGINE_SECRET_X", digest("hunter22").encode()):
        assert text not in file.read_bytes()


def test_a_message_of_a_template_is_said_each_time(tmp_path, caplog):
    edits = Edits(1, tmp_path / "project")
    edits.put("models/loud.sql", EXTRAS["models/loud.sql"])
    for _ in range(2):
        caplog.clear()
        with caplog.at_level("DEBUG"):
            edits.compiled(tmp_path / "kept")
        assert "again" in caplog.text


@pytest.mark.parametrize("damage", ["gone", "empty", "shorter", "head", "other"])
def test_a_damaged_cache_is_compiled_over_or_told(tmp_path, damage):
    edits = Edits(1, tmp_path / "project")
    before = shown(edits.compiled(tmp_path / "kept"))
    (kept,) = (tmp_path / "kept").rglob("dev.cache")
    whole = kept.read_bytes()
    nodes = len(whole) - 8 - int.from_bytes(whole[:8])
    assert nodes > 1000
    if damage == "gone":
        kept.unlink()
    else:
        kept.write_bytes(
            {"empty": b"", "shorter": whole[:-1], "head": whole[:20], "other": whole[:-nodes] + bytes(nodes)}[damage]
        )
    if damage != "other":
        assert shown(edits.compiled(tmp_path / "kept")) == before
        return
    with pytest.raises(ProjectError) as raised:
        shown(edits.compiled(tmp_path / "kept"))
    assert raised.value.diagnostic.code == "cache-damaged"


def test_a_folder_that_becomes_a_link_out_of_the_project_is_seen(tmp_path):
    edits = Edits(1, tmp_path / "project")
    assert "path-outside" not in codes(edits, tmp_path)
    folder = edits.root / "landing"
    folder.symlink_to(tmp_path)
    for _ in range(2):
        assert "path-outside" in codes(edits, tmp_path)
    folder.unlink()
    folder.mkdir()
    assert "path-outside" not in codes(edits, tmp_path)


def codes(edits: Edits, tmp_path: Path) -> list[str]:
    return [problem.code for problem in edits.compiled(tmp_path / "kept").manifest.diagnostics]


def test_a_cache_that_cannot_be_written_is_no_fault(tmp_path):
    edits = Edits(1, tmp_path / "project")
    (tmp_path / "kept").write_text("a file")
    assert shown(edits.compiled(tmp_path / "kept")) == shown(edits.compiled(None))


def test_a_target_that_is_no_name_leaves_nothing_outside_the_cache(tmp_path):
    edits = Edits(1, tmp_path / "project")
    for _ in range(2):
        result = compile_project(load_project(edits.root), target="../../x", env={}, cached=tmp_path / "kept")
        assert result.manifest.errors[0].code == "unknown-target"
    assert {path.name for path in tmp_path.iterdir()} == {"project", "kept"}
    assert {path.parent.name for path in (tmp_path / "kept").rglob("*") if path.is_file()} == {"compiled"}
