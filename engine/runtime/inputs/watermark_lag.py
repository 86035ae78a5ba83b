"""Watermarks that need a word: one of several inputs holds it back, or it is ahead of the clock.

Spark has one watermark a query: the smallest of its inputs', each the newest event time less its delay. An input
without a row since the start holds it where it is (measured on Spark 4.1.4): windows stay open and outer rows do not
come. It never goes back: a time in the future makes late rows of all that follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.errors import Diagnostic, Level
from engine.relations import quoted
from engine.times import SECONDS, duration_seconds, time_millis

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_FIRST, _LAST = -62_135_596_800 * _SECOND, 253_402_300_799 * _SECOND


def moment(micros: int) -> datetime:
    """The time of some microseconds since 1970, in UTC; the nearest that Python has."""
    return _EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))


_NEWEST = "newest"
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
_HINT = (
    "Windows and unmatched rows are not written until it advances; nothing is lost. It advances when a build reads "
    "later rows of '{0}'. If that input has ended, make it static (remove it from 'streams:'), or send one row "
    "with a later timestamp."
)
_DAY_MILLIS = SECONDS["day"] * 1000
_AHEAD_HINT = (
    "Correct the times, or set max_future: 1 hour next to its watermark, which turns such rows into bad records "
    "(handled by on_bad_record); then recompute the table: engine build -s {0} --full-refresh."
)


@dataclass(frozen=True, slots=True)
class Timed:
    """An input with a watermark, `delay` in seconds; through an ephemeral model two may have one name."""

    name: str
    view: str
    delay: float

    @property
    def observation(self) -> str:
        return f"event time of {self.view}"


def timed(model: Model) -> tuple[Timed, ...]:
    marked = [(item, item.watermark) for item in model.inputs if item.stream and item.watermark]
    timed_inputs = tuple(Timed(item.name, item.view, duration_seconds(mark.delay)) for item, mark in marked)
    return timed_inputs if len(timed_inputs) > 1 else ()


def observed(frame: DataFrame, item: Timed, column: str) -> DataFrame:
    from pyspark.sql import functions as f

    return frame.observe(item.observation, f.max(f.unix_micros(f.col(quoted(column)))).alias(_NEWEST))


@dataclass(slots=True)
class EventTimes:
    """The newest event time of each input.

    `earlier_times`: by input, what earlier builds knew: its newest event time, and when that came. `newest`: by view,
    what this run has seen.
    """

    inputs: tuple[Timed, ...]
    earlier_times: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    newest: dict[str, datetime] = field(default_factory=dict)

    def see(self, record: Mapping[str, Any]) -> None:
        metrics = record.get("observedMetrics") or {}
        for item in self.inputs:
            micros = (metrics.get(item.observation) or {}).get(_NEWEST)
            if micros is not None:
                at = moment(int(micros))
                self.newest[item.view] = max(at, self.newest.get(item.view, at))

    def by_name(self) -> dict[str, str | None]:
        return {item.name: _text(self.newest[item.view]) if item.view in self.newest else None for item in self.inputs}

    def merged_times(self) -> dict[str, dict[str, str]]:
        came = datetime.now(UTC).isoformat(timespec="seconds")
        times = {name: dict(earlier) for name, earlier in self.earlier_times.items()}
        for item in self.inputs:
            at = self.newest.get(item.view)
            if at is not None and _text(at) > times.get(item.name, {}).get(_NEWEST, ""):
                times[item.name] = {_NEWEST: _text(at), "came": came}
        return times

    def held_back(self, model: Model, watermark: str | None, waiting: int, policy: str) -> Diagnostic | None:
        """Return the warning that an input holds back the others, if one does and rows wait in state for it."""
        if not waiting or policy != "min" or not self.newest:
            return None
        positions = {v.view: self.newest[v.view].timestamp() - v.delay for v in self.inputs if v.view in self.newest}
        last = min(self.inputs, key=lambda item: positions.get(item.view, float("-inf")))
        other_positions = [at for view, at in positions.items() if view != last.view]
        if last.view in positions and min(other_positions) - positions[last.view] <= last.delay:
            return None
        stands = f"at {_short(watermark)}" if watermark else "not set yet"
        ahead = max((i for i in self.inputs if i.view in positions and i is not last), key=lambda i: positions[i.view])
        message = (
            f"'{last.name}' holds back the watermark of '{model.name}', which is {stands}: {self._lag_reason(last)}; "
            f"'{ahead.name}' is at {_short(_text(self.newest[ahead.view]))}"
        )
        return Diagnostic("watermark-held", message, _HINT.format(last.name), Level.WARNING, model.name)

    def _lag_reason(self, item: Timed) -> str:
        if item.view in self.newest:
            return f"its newest event time is {_short(_text(self.newest[item.view]))}"
        if (earlier := self.earlier_times.get(item.name)) is None:
            return "it has had no rows so far"
        came = _short(earlier.get("came", ""))
        return f"it had no rows in this build; its newest event time, {_short(earlier.get(_NEWEST, ''))}, came {came}"


def ahead_of_clock(model: Model, watermark: str | None, now: datetime) -> Diagnostic | None:
    """Warn that rows of today count as late, if the watermark (ISO text; None: none yet) is over a day ahead."""
    if not model.stateful or watermark is None:
        return None
    ahead = time_millis(watermark) - round(now.timestamp() * 1000)
    if ahead <= _DAY_MILLIS:
        return None
    days = ahead // _DAY_MILLIS
    message = (
        f"the watermark of '{model.name}' is {_short(watermark)}, {days:,} day{'s' * (days != 1)} ahead of the clock: "
        "all rows before it count as late"
    )
    return Diagnostic("watermark-ahead", message, _AHEAD_HINT.format(model.name), Level.WARNING, model.name)


def policy_of(session: Any) -> str:
    return str(session.conf.get(_POLICY, "min"))


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z").removesuffix("+00:00").removesuffix(".000")
