"""What the engine says of pairs: by the normal form, and by what `plan` compares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.compile import Manifest, compile_project
from engine.compile.sql.normalize import same_meaning
from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from engine.project import load_project
from tests.project.small_projects import PROJECT
from tests.sameness.tables import COLUMNS, schema

_HEADER = "/*---\nstreams: {shop.t: {watermark: ts delay 10 minutes}}\n---*/\n"
_TABLE = re.compile(r"\[\[(\w+)\]\]")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two queries; `streams`: over a stream, with state."""

    one: str
    other: str
    streams: bool


@dataclass(frozen=True, slots=True)
class Said:
    """What the engine says of a pair.

    Attributes:
        form: the normal form is the same.
        change: what `plan` says of the edit; None: compile rejects one of the two.
        reasons: why, in its words.
    """

    form: bool
    change: Change | None
    reasons: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether one of them calls the two the same."""
        return self.form or self.change is Change.UNCHANGED


def says(folder: Path, pairs: Sequence[Pair]) -> list[Said]:
    """What the engine says of each pair, all of them as models of two projects."""
    before = _compiled(folder / "before", [(pair.one, pair.streams) for pair in pairs])
    after = _compiled(folder / "after", [(pair.other, pair.streams) for pair in pairs])
    return [_said(pair, number, before, after) for number, pair in enumerate(pairs)]


def plain(sql: str) -> str:
    """The query as Spark reads it."""
    return _TABLE.sub(r"\1", sql)


def _said(pair: Pair, number: int, before: Manifest, after: Manifest) -> Said:
    form = same_meaning(plain(pair.one), plain(pair.other))
    old, new = before.model(f"m{number}"), after.model(f"m{number}")
    if old.broken or new.broken or not old.facts or not new.facts:
        return Said(form, None)
    found = compare_model(after, new, LastWriter(old.fingerprint, old.facts))
    return Said(form, found.change, found.reasons)


def _compiled(folder: Path, queries: Sequence[tuple[str, bool]]) -> Manifest:
    for name in ("models", "sources"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "project.yml").write_text(PROJECT)
    tables = "".join(
        f'      - {{name: {name}, format: json, path: landing/{name}, schema: "{schema(name)}"}}\n' for name in COLUMNS
    )
    (folder / "sources/shop.yml").write_text(f"sources:\n  - name: shop\n    tables:\n{tables}")
    for number, (sql, streams) in enumerate(queries):
        text = _TABLE.sub(r"{{ source('shop', '\1') }}", sql)
        (folder / f"models/m{number}.sql").write_text(f"{_HEADER if streams else ''}{text}\n")
    return compile_project(load_project(folder), env={}).manifest
