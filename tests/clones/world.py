"""Two checkouts over one lake: production, and a pull request whose models continue from production's tables.

Rows come in the order of their times, so that no window and no key depends on where a micro-batch ends.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fault_injection.points import kill, reached
from tests.histories.difference import DifferenceError
from tests.lab import EVENTS, Lab, Result

MODELS = {
    "paid": "/*---\nstreams: [shop.events]\n---*/\n"
    "select id, at, kind, amount, {version} as version from {{{{ source('shop', 'events') }}}}\n",
    "copy": "/*---\nstreams: [paid]\n---*/\nselect id, version from {{{{ ref('paid') }}}}\n",
    "hourly": "/*---\nstreams: {{paid: {{watermark: at delay 10 minutes}}}}\nwindows: {{hour: 'tumbling(at, 1 hour)'}}\n"
    "---*/\nselect hour.start as hour, count(*) as n from {{{{ ref('paid') }}}} group by hour\n",
    "newest": "/*---\nstreams: [shop.events]\non_schema_change: append_columns\nunique_key: kind\nsequence_by: at\ndelete_when: amount < 1\n---*/\n"
    "select kind, at, id, amount{newest} from {{{{ source('shop', 'events') }}}}\n",
    "other": "/*---\nstreams: [shop.events]\n---*/\nselect id + 1000 as id from {{{{ source('shop', 'events') }}}}\n",
}
POINTS = (
    "computing", "committing", "committed", "recorded", "table cloned", "state cloned", "clone noted",
)  # fmt: skip
_START = datetime(2024, 5, 1, tzinfo=UTC)
_PR = "pr"


@dataclass(slots=True)
class World:
    """What has landed, and what each side has read.

    Attributes:
        lab: production.
        request: the pull request.
        landed: the rows, in order.
        kept: how many rows production had read when the tables were cloned; None: there is no clone.
        version: of the edited models.
        read: how many rows production had read when it was built last.
        whole: no build of production was killed since.
        tally: what happened.
    """

    lab: Lab
    request: Lab
    landed: list[dict[str, Any]] = field(default_factory=list)
    kept: int | None = None
    version: int = 2
    read: int = 0
    whole: bool = True
    tally: Counter[str] = field(default_factory=Counter)
    _minute: int = 0
    _files: int = 0

    @classmethod
    def made(cls, folder: Path, session: Any, printed: Any) -> World:
        """Two projects over one lake."""
        lab = Lab(folder / "prod", session, printed)
        request = Lab(folder / "request", session, printed, lab.schema)
        head, target = (request.root / "project.yml").read_text().split("targets:\n", 1)
        prod = target.replace("    schema:", f"    state: {lab.root / '.engine' / 'state'}\n    schema:")
        own = target.replace("  dev:", f"  {_PR}:").replace(f"schema: {lab.schema}", f"schema: {lab.schema}_pr")
        request.write("project.yml", f"{head}targets:\n{prod.rstrip()}\n{own}")
        for one in (lab, request):
            one.write("sources/shop.yml", EVENTS.replace("landing", str(lab.root / "landing")))
        world = cls(lab, request)
        world.write(lab, 1)
        world.write(request, 2)
        return world

    @staticmethod
    def write(lab: Lab, version: int) -> None:
        """Write the models; those of the pull request differ in two of them."""
        for name, text in MODELS.items():
            lab.model(name, text.format(version=version, newest="" if version == 1 else ", 1 as more"))

    def land(self, dice: random.Random) -> None:
        rows = []
        for _ in range(dice.randint(1, 4)):
            self._minute += dice.choice((1, 7, 20, 55))
            at = (_START + timedelta(minutes=self._minute)).strftime("%Y-%m-%dT%H:%M:%SZ")
            amount = dice.choice((0.5, 1.5, 2.5, 4.0))
            rows.append({"id": len(self.landed) + len(rows), "at": at, "kind": dice.choice("abcd"), "amount": amount})
        self._files += 1
        self.lab.land(f"{self._files:04}", rows)
        self.landed += rows

    def production(self, point: str) -> None:
        """Build production; a build that is killed is followed by one that is not, some time."""
        if self._killed(self.lab, ("build",), point):
            # Some of its tables may have read what has landed, others not.
            self.whole = False
            return
        self._good(self.lab.run("build"), "production")
        self.read, self.whole = len(self.landed), True
        self._same(self.lab, self.lab.schema, [1] * len(self.landed))

    def clone(self, point: str) -> None:
        """Build the pull request, killed first if there is a point; then all of it is right."""
        command = ("build", "-t", _PR, "--clone", "dev")
        before = self.request.run("plan", "-t", "dev")
        if "Traceback" in before.text:
            raise DifferenceError(before.text)
        if point and self._killed(self.request, command, point):
            self.tally["killed clones"] += 1
        if self.kept is None:
            # Production is not built between a kill and the end of it.
            self.kept = len(self._rows(self.lab, self.lab.schema, "paid") or ())
        self._good(self.request.run(*command), "clone")
        self._same(self.request, f"{self.lab.schema}_pr", self._versions())

    def edit(self) -> None:
        """Another edit of the pull request, which has read all by now."""
        if self.kept is not None:
            self.history = [*self._versions()]
        self.version += 1
        self.write(self.request, self.version)

    history: list[int] = field(default_factory=list)

    def _versions(self) -> list[int]:
        """The version of the query that each row was read with."""
        known = self.history or [1] * (self.kept or 0)
        return [*known, *([self.version] * (len(self.landed) - len(known)))]

    def drop(self) -> None:
        """Remove the pull request's tables."""
        self._good(self.request.run("drop", "--all", "--target", _PR, "--yes"), "drop")
        self.kept, self.history = None, []
        if self.whole:
            self._same(self.lab, self.lab.schema, None)

    def maintain(self) -> None:
        """Compact production's tables and expire what they were."""
        self._good(self.lab.run("maintain", "--older-than", "1 second"), "maintain")

    def _killed(self, lab: Lab, command: tuple[str, ...], point: str) -> bool:
        if not point:
            return False
        with reached(point, lambda *_: kill()):
            result = lab.run(*command)
        self.tally[f"{command[0]} {point}"] += result.code != 0
        return result.code != 0

    def _good(self, result: Result, what: str) -> None:
        if result.code != 0:
            raise DifferenceError(f"{what} ended with {result.code}: {result.text[-3000:]}")

    def _rows(self, lab: Lab, schema: str, name: str) -> list[dict[str, Any]] | None:
        found = lab._lake().rows(schema, name, None)
        return None if found is None else [dict(zip(found[0], row, strict=True)) for row in found[1]]

    def _same(self, lab: Lab, schema: str, versions: list[int] | None) -> None:
        """Compare all tables with what Python makes of the rows that were read."""
        rows = self.landed if versions is not None else self.landed[: self.read]
        versions = versions or [1] * self.read
        found = {name: self._rows(lab, schema, name) for name in MODELS}
        pairs = Counter(zip((row["id"] for row in rows), versions, strict=True))
        for name in ("paid", "copy"):
            self._equal(name, Counter((row["id"], row["version"]) for row in found[name] or ()), pairs)
        self._equal("newest", {row["kind"]: row["id"] for row in found["newest"] or ()}, _newest(rows))
        hours = {row["hour"].strftime("%dT%H"): row["n"] for row in found["hourly"] or ()}
        self._equal("hourly", hours, _hours(rows))
        if found["other"] is not None:
            self._equal("other", sorted(r["id"] for r in found["other"]), [r["id"] + 1000 for r in rows])

    def _equal(self, name: str, found: Any, wanted: Any) -> None:
        if found != wanted:
            raise DifferenceError(f"{name}: {found} and not {wanted}")


def _newest(rows: list[dict[str, Any]]) -> dict[str, int]:
    last = {row["kind"]: row for row in rows}
    return {kind: row["id"] for kind, row in last.items() if row["amount"] >= 1}


def _hours(rows: list[dict[str, Any]]) -> dict[str, int]:
    """The windows that are closed: event time has passed their ends by ten minutes."""
    if not rows:
        return {}
    watermark = datetime.fromisoformat(rows[-1]["at"]) - timedelta(minutes=10)
    counts = Counter(datetime.fromisoformat(row["at"]).replace(minute=0, second=0) for row in rows)
    return {hour.strftime("%dT%H"): n for hour, n in counts.items() if hour + timedelta(hours=1) <= watermark}
