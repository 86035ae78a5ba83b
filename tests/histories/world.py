"""A small project on disk, what has landed in it, and what others do to its tables."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.lake.commits import STAGED
from engine.lake.table_facts import TableFacts
from engine.state import ModelState, TableState
from engine.state.operations import Rename
from tests.histories.difference import DifferenceError
from tests.histories.kinds import CONNECTION, FED_SOURCE, FEED, KINDS, MACRO, PROJECT_SETTINGS, SOURCES
from tests.histories.oracle import Row, micros
from tests.histories.steps import BROKEN, File, Plan
from tests.lab import PROJECT, Lab
from tests.services.kafka import Broker

_VARS = "vars: {factor: <factor>}\n"


@dataclass(slots=True)
class World:
    """The project of a history.

    Attributes:
        lab: its folder and tables.
        models: their names.
        settings: of each model as its file is now; those of the project under an empty name.
        landed: the rows of each file by its name below `landing/`, None for a record that cannot be read; a record of
            the topic is a file of its own, by its partition and offset.
        gone: names of files that are not there any more.
        names: of the tables of models that were renamed, as it is now and as it was before.
        said: the codes that a command of the last step ended with.
        broker: of the topic.
        topic: its name; empty: no model reads one.
    """

    lab: Lab
    models: tuple[str, ...]
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    landed: dict[str, list[Row | None]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    said: str = ""
    broker: Broker | None = None
    topic: str = ""
    _ends: Counter[int] = field(default_factory=Counter)

    def make(self, plan: Plan) -> None:
        """Write the project with its first settings."""
        self.settings[""] = {name: values[0] for name, values in PROJECT_SETTINGS.items()}
        for model in self.models:
            self.settings[model] = {name: values[0] for name, values in KINDS[model].settings.items()}
        for model, name, value in plan.options:
            if model in self.settings:
                self.settings[model][name] = value
        if self.broker is not None and any(FEED in KINDS[model].sources for model in self.models):
            self.topic = self.broker.create(f"t-{uuid.uuid4().hex[:8]}", 2)
        self.write()

    def write(self) -> None:
        """Write all files of the project as the settings are."""
        project = self.settings[""]
        text = PROJECT.format(lake=self.lab.lake_path, schema=self.lab.schema)
        sources = SOURCES.replace("<path>", project["path"]).replace("<schema>", project["schema"])
        if self.topic and self.broker is not None:
            text = text.rstrip() + "\n" + CONNECTION.replace("<address>", self.broker.address)
            sources = sources.rstrip() + "\n" + FED_SOURCE.replace("<topic>", self.topic)
        self.lab.write("project.yml", text + _VARS.replace("<factor>", project["factor"]))
        self.lab.write("sources/shop.yml", sources)
        self.lab.write("macros/scaled.sql", MACRO.replace("<macro>", project["macro"]))
        for model in self.models:
            self.lab.model(model, self._renamed(model, KINDS[model].file(self.settings[model])))

    def _renamed(self, model: str, text: str) -> str:
        if model not in self.names:
            return text
        now, before = self.names[model]
        header, sep, body = text.rpartition("---*/\n")
        keys = f"alias: {now}\nrenamed_from: {before}\n"
        return f"{header}{keys}{sep}{body}" if sep else f"/*---\n{keys}---*/\n{body}"

    def rename_table(self, model: str) -> Callable[[], None]:
        """Give the table of a model another name in its header, or its first one again; how to undo that.

        A rename that was begun is finished before there is another one.
        """
        now, _ = self.names.get(model, (model, ""))
        after = f"{model}_moved" if now == model else model

        def to(name: str, old: str) -> None:
            if self.state(model).journal.open_operation(Rename) is None:
                self.names[model] = name, old
                self.write()

        to(after, now)
        return lambda: to(now, after)

    def _known_as(self, model: str, ending: str = "") -> str:
        """The name of the table of a model: a rename that was killed has not happened, or has."""
        names = dict.fromkeys(name + ending for name in self.names.get(model, (model,)))
        there = [name for name in names if self.lab.table(name) is not None]
        if len(there) > 1:
            raise DifferenceError(f"two tables of one model: {there}")
        return there[0] if there else next(iter(names))

    def table(self, model: str, ending: str = "") -> TableFacts | None:
        return self.lab.table(self._known_as(model, ending))

    def snapshot(self, model: str) -> int | None:
        return self.lab.snapshot(self._known_as(model))

    def rows(self, model: str, ending: str = "") -> list[dict[str, Any]]:
        return self.lab.rows(self._known_as(model, ending))

    def effective(self, model: str) -> dict[str, str]:
        """All settings that the rows of a model depend on."""
        return {**self.settings[""], **self.settings[model]}

    def land(self, source: str, rows: File, odd: str = "") -> None:
        """Land a file; Spark passes over those whose odd name is that of a hidden file. Rows of the topic are sent."""
        if source == FEED:
            if self.topic:
                self._send(rows)
            return
        name = f"{len(self.landed):04}" if not odd else f"{odd}-{len(self.landed)}"
        aside = self.lab.land(name, [], "aside")
        stamp = aside.stat().st_mtime
        aside.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        os.utime(aside, (stamp, stamp))
        folder = self.lab.root / "landing" / source
        folder.mkdir(parents=True, exist_ok=True)
        # Whole: somebody may be reading what lands.
        aside.rename(folder / aside.name)
        if odd.startswith(".") or (odd.startswith("_") and "=" not in odd):
            return
        self.landed[f"{source}/{name}.json"] = [None if row == BROKEN else _parsed(row) for row in rows]

    def _send(self, rows: File) -> None:
        assert self.broker is not None
        partitions = self.broker.partitions(self.topic)
        for row in rows:
            partition = partitions[sum(self._ends.values()) % len(partitions)]
            self.broker.send(self.topic, [row], partition)
            name = f"{FEED}/{partition}-{self._ends[partition]}"
            self.landed[name] = [None if row == BROKEN else _parsed(row)]
            self._ends[partition] += 1

    def widen(self, _: str) -> None:
        """Give the topic one more partition."""
        if self.topic and self.broker is not None:
            self.broker.widen(self.topic, len(self.broker.partitions(self.topic)) + 1)

    def staged(self, model: str) -> int | None:
        """The snapshot that waits for the tests of a model."""
        table = self.lab._lake().table(self.lab.schema, self._known_as(model), STAGED)
        return None if table is None or STAGED not in table.branches else table.snapshot

    def files(self, model: str) -> set[str]:
        """The files that a model must have read by now."""
        sources = KINDS[model].sources
        return {name for name in self.landed if name.split("/")[0] in sources and name not in self.gone}

    def state(self, model: str) -> TableState:
        found = [
            TableState(self.lab.state.parent.parent, "lake", self.lab.schema, name)
            for name in self.names.get(model, (model,))
        ]
        return next((state for state in found if state.folder.exists() and state.generations()), found[0])

    def loaded(self, model: str) -> ModelState | None:
        return self.state(model).load()

    def rename(self, choice: float) -> Callable[[], None] | None:
        """Give a landed file another name; how to undo that."""
        names = sorted(name for name in set(self.landed) - self.gone if not name.startswith(f"{FEED}/"))
        if not names:
            return None
        old = names[int(choice * len(names))]
        new = old.replace(".json", "-renamed.json")
        if new in self.landed:
            return None
        self._move(old, new)
        return lambda: self._move(new, old)

    def _move(self, old: str, new: str) -> None:
        (self.lab.root / "landing" / old).rename(self.lab.root / "landing" / new)
        self.landed[new] = self.landed[old]
        self.gone.add(old)
        self.gone.discard(new)

    def move(self) -> Callable[[], None]:
        """Move the project's folder; how to undo that."""
        before, after = self.lab.root, self.lab.root.with_name(self.lab.root.name + "-moved")

        def back() -> None:
            self.lab.root = self.lab.root.rename(before)

        self.lab.root = before.rename(after)
        return back

    def lose(self, model: str, *, checkpoint: bool) -> bool:
        """Remove the state of a model, or only its checkpoint; whether there was something."""
        state = self.loaded(model)
        folder = self.state(model).folder
        if state is None or not folder.exists():
            return False
        shutil.rmtree(self.state(model).checkpoint(state.generation) if checkpoint else folder, ignore_errors=True)
        return True

    def sql(self, text: str, model: str) -> Any:
        """Run SQL in the shared session, `<table>` is the model's."""
        assert self.lab.session is not None
        spark = self.lab.session.spark.newSession()
        return spark.sql(text.replace("<table>", f"{self.lab.schema}.{self._known_as(model)}")).collect()

    def roll_back(self, model: str) -> Callable[[], None] | None:
        """Set a table back by a snapshot, if it has two; how to undo that."""
        table = self.table(model)
        if table is None or len(table.history) < 2 or table.snapshot is None:
            return None
        head = table.snapshot
        found = self.sql("select parent_id from lake.<table>.snapshots where snapshot_id = " + str(head), model)
        parent = found[0][0]
        if parent is None:
            return None
        self.sql(f"call lake.system.set_current_snapshot('<table>', {parent})", model)
        return lambda: self.sql(f"call lake.system.set_current_snapshot('<table>', {head})", model)

    def compact(self, model: str) -> None:
        if self.table(model) is not None:
            options = "map('rewrite-all', 'true')"
            self.sql(f"call lake.system.rewrite_data_files(table => '<table>', options => {options})", model)

    def add_column(self, model: str) -> Callable[[], None] | None:
        """Add a column to a table as another engine might; how to undo that."""
        table = self.table(model)
        if table is None or "added" in dict(table.columns):
            return None
        self.sql("alter table lake.<table> add column added int", model)
        return lambda: self.sql("alter table lake.<table> drop column added", model)

    def tag(self, model: str) -> None:
        table = self.table(model)
        if table is not None and table.snapshot is not None:
            self.sql(f"alter table lake.<table> create tag if not exists foreign as of version {table.snapshot}", model)

    def expire(self, model: str) -> None:
        if self.table(model) is not None:
            at = "timestamp '2100-01-01 00:00:00'"
            self.sql(f"call lake.system.expire_snapshots(table => '<table>', older_than => {at})", model)


def _parsed(row: Any) -> Row:
    return {key: micros(value) if key in ("at", "seq") and value else value for key, value in row.items()}


def shown(root: Path) -> str:
    """The files of a project, for a report."""
    files = [*root.glob("models/*.sql"), root / "sources" / "shop.yml"]
    return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in sorted(files))
