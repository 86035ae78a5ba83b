"""A model with state as an analyst may write it, in each of its forms, and its rows as Python computes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

Row = dict[str, Any]
TYPES: Final = {"k": "string", "j": "string", "a": "int", "b": "int", "c": "int", "ts": "timestamp"}
KINDS: Final = ("grouped", "grouped", "having", "windows", "dedup", "distinct", "joined")
# By the call: its SQL over a column, and its value over the values of that column.
CALLS: Final[dict[str, tuple[tuple[str, ...], Callable[[list[int]], Any]]]] = {
    "sum": (("sum({})", "SUM( {} )"), sum),
    "max": (("max({})",), max),
    "min": (("min({})", "MIN({})"), min),
    "count": (("count(*)", "count(1)"), len),
}
# Beside it a watermark drops nothing.
_FOR_EVER: Final = "30 days"


@dataclass
class Item:
    """A column of the table: a key (`call` is empty) or an aggregate of a column."""

    call: str
    of: str
    name: str


@dataclass
class Shape:
    """All that an edit can change of a model and of what it reads.

    Attributes:
        number: of the chain; its sources land in a folder with it.
        kind: see KINDS.
        model: its name.
        table: that it writes.
        renamed_from: what the table was before the edit of this round.
        source: the name of the declaration.
        schema: the columns of the source, in the order of its schema.
        names: of those columns, by what they are; files without a header know only places.
        positional: its files are CSV without a header.
        staged: the names of the columns of a model between the two; empty: there is none.
        stage: the name of that model.
        renamed: earlier names, in this round, of columns of the table and of the model between.
        items: the SELECT list.
        keys: of the group, in its order; of a dedup.
        alias: of the input.
        form: `plain`, `cte` or `subquery`.
        qualified: columns are written with the alias.
        spelling: which spelling of a call is used.
        limit: of HAVING.
        extra: columns that the source has and nobody reads.
    """

    number: int
    kind: str
    model: str
    source: str
    items: list[Item]
    keys: list[str]
    table: str = ""
    renamed_from: str = ""
    stage_renamed_from: str = ""
    schema: list[str] = field(default_factory=lambda: list(TYPES))
    names: dict[str, str] = field(default_factory=lambda: {name: name for name in TYPES})
    positional: bool = False
    staged: dict[str, str] = field(default_factory=dict)
    stage: str = ""
    renamed: dict[str, str] = field(default_factory=dict)
    stage_renamed: dict[str, str] = field(default_factory=dict)
    alias: str = "e"
    form: str = "plain"
    qualified: bool = False
    spelling: int = 0
    limit: int = 4
    extra: int = 0
    comment: str = ""

    def __post_init__(self) -> None:
        self.table = self.table or self.model

    @property
    def folders(self) -> tuple[str, ...]:
        sides = ("l", "r") if self.kind == "joined" else ("l",)
        return tuple(f"landing/c{self.number}{side}" for side in sides)

    def declarations(self) -> Iterator[str]:
        """The lines of its sources."""
        columns = [f"{self.names[name]} {TYPES[name]}" for name in self.schema]
        columns += [f"extra{number} string" for number in range(self.extra)]
        form = "format: csv, options: {header: 'false'}" if self.positional else "format: json"
        for folder in self.folders:
            yield f"      - {{name: {self.source}_{folder[-1]}, {form}, path: {folder}, schema: '{', '.join(columns)}'}}"

    def files(self) -> dict[str, str]:
        """The texts of its models, by name."""
        found = {self.model: self._text()}
        if self.staged:
            columns = ", ".join(f"{self.names[of]} as {name}" for of, name in self.staged.items())
            header = [f"streams: [raw.{self.source}_l]", *_renames(self.stage_renamed_from, self.stage_renamed)]
            found[self.stage] = _file(header, f"select {columns} from {{{{ source('raw', '{self.source}_l') }}}}")
        return found

    def _name(self, of: str, alias: str = "") -> str:
        name = (self.staged or self.names)[of]
        return f"{alias}.{name}" if alias else name

    def _text(self) -> str:
        read = [f"{{{{ ref('{self.stage}') }}}}"] if self.staged else [
            f"{{{{ source('raw', '{self.source}_{folder[-1]}') }}}}" for folder in self.folders
        ]  # fmt: skip
        streams = [self.stage] if self.staged else [f"raw.{self.source}_{folder[-1]}" for folder in self.folders]
        return _file([*self._header(streams), *_renames(self.renamed_from, self.renamed)], self._query(read))

    def _header(self, streams: list[str]) -> Iterator[str]:
        delay = "1 minute" if self.kind == "windows" else _FOR_EVER
        marks = {
            "grouped": "{}",
            "having": "{}",
            "distinct": "{}",
            "dedup": f"{{watermark: {self._name('ts')} delay {delay}, dedup: [{', '.join(map(self._name, self.keys))}]}}",
        }
        mark = marks.get(self.kind, f"{{watermark: {self._name('ts')} delay {delay}}}")
        yield f"streams: {{{', '.join(f'{stream}: {mark}' for stream in streams)}}}"
        if self.kind in {"grouped", "having", "distinct"}:
            yield "output_mode: update"
            yield f"unique_key: [{', '.join(item.name for item in self.items if not item.call)}]"
        if self.table != self.model:
            yield f"alias: {self.table}"
        yield "state_store: {partitions: 1, provider: hdfs}"

    def _query(self, read: list[str]) -> str:
        if self.kind == "joined":
            return self._join(*read)
        alias = self.alias if self.qualified else ""
        shown = ", ".join(f"{self._shown(item, alias)} as {item.name}" for item in self.items)
        columns = ", ".join(self._name(of) for of in TYPES)
        relation, ahead = f"{read[0]} as {self.alias}", ""
        if self.form == "cte":
            ahead, relation = f"with named as (select {columns} from {read[0]}) ", f"named as {self.alias}"
        elif self.form == "subquery":
            relation = f"(select {columns} from {read[0]}) as {self.alias}"
        text = f"{ahead}select {'distinct ' if self.kind == 'distinct' else ''}{shown} from {relation}"
        if self.kind in {"grouped", "having", "windows"}:
            groups = [self._name(key, alias) for key in self.keys]
            if self.kind == "windows":
                groups.insert(0, f"window({self._name('ts', alias)}, '1 hour')")
            text += f" group by {', '.join(groups)}"
        return text + (f" having count(*) < {self.limit}" if self.kind == "having" else "") + self.comment

    def _join(self, left: str, right: str) -> str:
        other = f"{self.alias}2"
        names = {"l": self.alias, "r": other}
        shown = ", ".join(f"{self._name(item.of[1:], names[item.of[0]])} as {item.name}" for item in self.items)
        key = [self._name("k", self.alias), self._name("k", other)]
        near = (
            f"{self._name('ts', other)} between {self._name('ts', self.alias)} - interval 1 hour "
            f"and {self._name('ts', self.alias)} + interval 1 hour"
        )
        if self.spelling:
            key.reverse()
        return f"select {shown} from {left} as {self.alias} join {right} as {other} on {' = '.join(key)} and {near}{self.comment}"

    def _shown(self, item: Item, alias: str) -> str:
        if item.of == "window":
            return "window.start"
        if not item.call:
            return self._name(item.of, alias)
        spellings = CALLS[item.call][0]
        return spellings[self.spelling % len(spellings)].format(self._name(item.of, alias))


def _renames(table: str, columns: dict[str, str]) -> Iterator[str]:
    if table:
        yield f"renamed_from: {table}"
    if columns:
        yield "columns:"
        yield from (f"  {now}: {{renamed_from: {before}}}" for now, before in columns.items())


def _file(header: list[str], query: str) -> str:
    return "/*---\n" + "\n".join(header) + f"\n---*/\n{query}\n"


@dataclass
class Expected:
    """The rows of a table, computed from all rows that its builds read.

    An output that is computed from another aggregate applies to rows that are written from then on: so a row is
    computed when a build writes it, and afterwards only its names change.
    """

    read: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)

    def build(self, shape: Shape, landed: dict[str, list[Row]]) -> None:
        """Add what a build reads."""
        before = {name: now for now, name in shape.renamed.items()}
        self.rows = {
            key: {before.get(name, name): value for name, value in row.items()} for key, row in self.rows.items()
        }
        if shape.kind == "joined":
            self._join(shape, landed)
        elif shape.kind == "windows":
            self._close(shape, landed["l"])
        else:
            self._group(shape, landed["l"])

    def _group(self, shape: Shape, landed: list[Row]) -> None:
        self.read["l"] += landed
        keys = [item.of for item in shape.items] if shape.kind == "distinct" else shape.keys
        for row in landed:
            key = tuple(row[name] for name in sorted(keys))
            group = [other for other in self.read["l"] if tuple(other[name] for name in sorted(keys)) == key]
            if shape.kind == "having" and len(group) >= shape.limit:
                self.rows.pop(key, None)
            elif shape.kind != "dedup" or key not in self.rows:
                self.rows[key] = {item.name: _value(item, group) for item in shape.items}

    def _close(self, shape: Shape, landed: list[Row]) -> None:
        """Write the windows that the watermark has passed: an hour ends a minute before the newest row."""
        self.read["l"] += landed
        newest = max(row["ts"] for row in self.read["l"])
        last = newest[:13]
        for row in self.read["l"]:
            key = (row["ts"][:13], *(row[name] for name in sorted(shape.keys)))
            if key not in self.rows and row["ts"][:13] < last:
                group = [
                    other
                    for other in self.read["l"]
                    if (other["ts"][:13], *(other[name] for name in sorted(shape.keys))) == key
                ]
                self.rows[key] = {item.name: _value(item, group) for item in shape.items}

    def _join(self, shape: Shape, landed: dict[str, list[Row]]) -> None:
        for side, rows in landed.items():
            self.read[side] += [{**row, "number": len(self.read[side]) + n} for n, row in enumerate(rows)]
        for left in self.read["l"]:
            for right in self.read["r"]:
                key = (left["number"], right["number"])
                if key not in self.rows and left["k"] == right["k"] is not None and _near(left["ts"], right["ts"]):
                    sides = {"l": left, "r": right}
                    self.rows[key] = {item.name: sides[item.of[0]][item.of[1:]] for item in shape.items}


def _value(item: Item, group: list[Row]) -> Any:
    if item.of == "window":
        return f"{group[0]['ts'][:13]}:00:00"
    return CALLS[item.call][1]([row[item.of] for row in group]) if item.call else group[0][item.of]


def _near(left: str, right: str) -> bool:
    minutes = [int(at[8:10]) * 1440 + int(at[11:13]) * 60 + int(at[14:16]) for at in (left, right)]
    return abs(minutes[0] - minutes[1]) <= 60
