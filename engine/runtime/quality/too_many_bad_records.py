"""Bad records that a build takes out: too many are an error before anything is committed, all others a warning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import Diagnostic, Level, RunError
from engine.runtime.quality.bad_records import Observed, Watched, first_lines
from engine.sources import OnBadRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class TakenOut:
    bad: dict[str, int] = field(default_factory=dict)
    all: dict[str, int] = field(default_factory=dict)

    def refused(
        self, session: SparkSession, execution: Any, watched: Iterable[Watched], seen: Mapping[str, Observed]
    ) -> RunError | None:
        """The error of an input with too many bad records, those of an uncommitted execution included."""
        for item in watched:
            one = seen[item.view]
            if item.policy is OnBadRecord.FAIL or not one.bad:
                continue
            bad, read = one.bad + self.bad.get(item.view, 0), one.read + self.all.get(item.view, 0)
            if item.limit.exceeded(bad, read):
                return _error(item, bad, read, first_lines(session, execution, item))
        return None

    def add(self, watched: Iterable[Watched], seen: Mapping[str, Observed]) -> None:
        """Count what was committed; the static side of a stream is read again by each micro-batch."""
        for item in watched:
            if item.policy is not OnBadRecord.FAIL and item.once:
                self.bad[item.view] = seen[item.view].bad + self.bad.get(item.view, 0)
                self.all[item.view] = seen[item.view].read + self.all.get(item.view, 0)


def _error(item: Watched, bad: int, read: int, lines: list[str]) -> RunError:
    limit = f"more than max_bad_records: {item.limit}" if str(item.limit) else "all that the build has read"
    message = f"{bad:,} of {read:,} records of {item.name} cannot be read, {limit}: {'; '.join(lines)}"
    hint = (
        "Correct the schema or the records and build again: the same records are read. Or let them be taken out: "
        "'max_bad_records: 100%' (or a number) in the source."
    )
    return RunError("too-many-bad-records", message, hint)


def warnings(model: str, watched: Iterable[Watched], bad: Mapping[str, int]) -> tuple[Diagnostic, ...]:
    policies = {item.name: item.policy for item in watched}
    return tuple(_warning(model, name, count, policies.get(name)) for name, count in bad.items() if count)


def _warning(model: str, name: str, count: int, policy: OnBadRecord | None) -> Diagnostic:
    several = "1 record" if count == 1 else f"{count:,} records"
    kept = policy is OnBadRecord.QUARANTINE
    ended = f"{'was' if count == 1 else 'were'} {'quarantined' if kept else 'dropped'}"
    message = f"{several} of {name} could not be read and {ended}"
    hint = f"See why: engine show {model}__quarantine --table." if kept else "'on_bad_record: quarantine' keeps them."
    return Diagnostic("bad-records", message, hint, Level.WARNING, node=model)
