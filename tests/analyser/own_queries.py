"""Spark's own test queries: where compile and Spark's analyser differ, counted by cause."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.analyser.own_tables import Asked, Columns, as_model, declared
from tests.analyser.verdicts import BROKEN, Verdict, compiled_texts

# Findings that are about a project, and not about the query: variables of Spark's, which a project never replaces.
_OF_A_PROJECT = {"spark-variable"}
# Spark reads these as queries, and a model may not be one, so that its columns have names.
_NO_MODEL = {"not-a-query"}
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+")


@dataclass(frozen=True, slots=True)
class Unlike:
    """A query on which the two differ; `kind` is one of KINDS, `cause` what they have in common."""

    asked: Asked
    kind: str
    cause: str
    here: Verdict

    def __str__(self) -> str:
        lines = [f"{self.asked.file} {self.asked.number}: {' '.join(self.asked.sql.split())[:400]}"]
        lines.append(f"    here:  {self.here.refused or 'accepted'} {self.here.text} {self.here.columns or ''}"[:400])
        lines.append(
            f"    spark: {self.asked.refused or 'accepted'} {self.asked.text} {self.asked.columns or ''}"[:400]
        )
        return "\n".join(lines)


KINDS = ("rejected", "accepted", "count", "names", "types")


def kept(path: Path, asked: Iterable[Asked]) -> Iterator[Asked]:
    """Spark's answers from a file, or those that are asked now, which the file keeps."""
    if path.exists():
        for line in path.read_text().splitlines():
            yield _loaded(json.loads(line))
        return
    with path.open("w") as out:
        for one in asked:
            out.write(json.dumps(asdict(one)) + "\n")
            yield one


def _loaded(data: dict[str, Any]) -> Asked:
    tables = {name: _columns(columns) for name, columns in data.pop("tables").items()}
    columns = data.pop("columns")
    return Asked(**data, columns=columns and _columns(columns), tables=tables)


def _columns(pairs: Iterable[Sequence[str]]) -> Columns:
    return tuple((name, type_) for name, type_ in pairs)


def compared(folder: Path, asked: Sequence[Asked]) -> tuple[list[Unlike], collections.Counter[str]]:
    """The queries on which compile and Spark differ, and how many there are of each verdict."""
    sources: dict[str, dict[str, str]] = {}
    texts = [as_model(one.sql, _sources(one, sources)) for one in asked]
    here = compiled_texts(folder, texts, _written(sources))
    counts: collections.Counter[str] = collections.Counter()
    found = []
    for one, verdict in zip(asked, here, strict=True):
        undeclared = any(declared(columns) is None for columns in one.tables.values())
        if one.refused == BROKEN or undeclared or verdict.refused in _OF_A_PROJECT | _NO_MODEL:
            counts["left out"] += 1
            continue
        unlike = _unlike(one, verdict)
        found += [unlike] if unlike else []
        counts[unlike.kind if unlike else "agreed"] += 1
    return found, counts


def _sources(asked: Asked, sources: dict[str, dict[str, str]]) -> dict[str, str]:
    """The source of each table of a query: one for each form that a table has in the files."""
    result = {}
    for name, columns in asked.tables.items():
        schema = declared(columns)
        if schema is not None:
            forms = sources.setdefault(name, {})
            result[name] = forms.setdefault(schema, f"s{len(forms)}")
    return result


def _written(sources: dict[str, dict[str, str]]) -> str:
    """The file that declares the sources."""
    by_source: dict[str, list[str]] = {}
    for name, forms in sources.items():
        for schema, source in forms.items():
            table = f"{{name: {name}, format: json, path: landing/{source}/{name}, schema: {json.dumps(schema)}}}"
            by_source.setdefault(source, []).append(f"      - {table}\n")
    return "sources:\n" + "".join(
        f"  - name: {source}\n    tables:\n{''.join(tables)}" for source, tables in by_source.items()
    )


def _unlike(asked: Asked, here: Verdict) -> Unlike | None:
    if bool(here.refused) != bool(asked.refused):
        if here.refused:
            return Unlike(asked, "rejected", f"{here.refused}: {_QUOTED.sub('..', here.text)}"[:150], here)
        return Unlike(asked, "accepted", asked.refused, here)
    if here.refused or not here.columns:
        return None
    kind, cause = _column_difference(here.columns, asked.columns or ())
    return Unlike(asked, kind, cause, here) if kind else None


def _column_difference(ours: Sequence[tuple[str, str | None]], theirs: Columns) -> tuple[str, str]:
    """The kind of the first difference, and what it is; empty if there is none."""
    if len(ours) != len(theirs):
        return "count", f"{len(ours) - len(theirs):+d}"
    for (name, _), (other, _) in zip(ours, theirs, strict=True):
        # What is no word is the name that Spark makes of an expression without an alias: no column of a table.
        if name.lower() != other.lower() and _WORD.fullmatch(other):
            return "names", f"{_QUOTED.sub('..', name)} / {_QUOTED.sub('..', other)}"[:80]
    for (_, type_), (_, other) in zip(ours, theirs, strict=True):
        if type_ is not None and type_ != other:
            return "types", f"{type_} / {other}"[:80]
    return "", ""


def report(found: Iterable[Unlike], counts: collections.Counter[str], examples: int) -> str:
    """The differences by kind and cause, the most frequent first, each with some examples."""
    by_cause: dict[tuple[str, str], list[Unlike]] = {}
    for unlike in found:
        by_cause.setdefault((unlike.kind, unlike.cause), []).append(unlike)
    lines = []
    for kind in KINDS:
        lines.append(f"== {kind}: {counts[kind]}")
        causes = sorted((c for c in by_cause if c[0] == kind), key=lambda cause: -len(by_cause[cause]))
        for cause in causes:
            lines.append(f"{len(by_cause[cause]):5} {cause[1]}")
            lines += [f"      {one}" for one in by_cause[cause][:examples]]
    told = ", ".join(f"{counts[kind]} {kind}" for kind in ("agreed", *KINDS, "left out"))
    return "\n".join([*lines, f"{sum(counts.values())} queries: {told}"])
