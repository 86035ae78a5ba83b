"""What commands print: text for people, one JSON object a line for machines."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from engine.characters import one_line
from engine.cli.console.amounts import amount
from engine.cli.console.live_area import fits
from engine.cli.console.live_lines import live_line, turn_line
from engine.cli.console.live_progress import LiveProgress
from engine.cli.console.log_level import LogLevel
from engine.cli.console.safe_output import Part, Styled, indented, write, write_json
from engine.errors import Diagnostic, Level
from engine.events import (
    INTERRUPTED,
    BatchCommitted,
    Diagnosed,
    Event,
    Finished,
    LiveStarted,
    ModelFinished,
    ModelStarted,
    RunFinished,
    RunResults,
    RunStarted,
    SessionRestarted,
    SinkFinished,
    Status,
    StepStarted,
    TestFinished,
    TurnFinished,
    TurnStarted,
)
from engine.node_ids import shown_name

# So many findings that say the same of different nodes are shown one by one.
_FEW = 5


_WIDTH = 76
# Indentation of the second line of a message: as wide as the time before the first.
_STAMP = 10
_HINT = 4
_PROGRESS_SECONDS = 5.0
# Of what an edit changed.
_FILES_NAMED = 3
_COLOURS = {
    Status.SUCCESS: "green", Status.PASS: "green", Status.UNCHANGED: "green",
    Status.WARN: "yellow", Status.SKIPPED: "yellow", Status.ERROR: "red", Status.FAIL: "red",
}  # fmt: skip
_LEVELS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}
_WORDS = {Status.SUCCESS: "OK", Status.UNCHANGED: "OK", Status.SKIPPED: "SKIP", Status.ERROR: "ERROR"}


class Printer(Protocol):
    @property
    def for_people(self) -> bool:
        """Whether people read warnings here, who want to see each once; machines want all."""

    def say(self, *parts: Part) -> None:
        """A line for people; machines do not get it."""

    def diagnostics(self, diagnostics: Iterable[Diagnostic]) -> None: ...

    def event(self, event: Event) -> None: ...

    def summary(self, results: RunResults) -> None: ...

    @property
    def errors(self) -> Collection[str]:
        """The codes of the errors that people were shown; none where machines read."""


def printer(log_format: str, level: LogLevel = LogLevel.INFO) -> Printer:
    return JsonPrinter(level) if log_format == "json" else TextPrinter(level)


class JsonPrinter:
    for_people = False
    errors: Collection[str] = ()

    def __init__(self, level: LogLevel = LogLevel.INFO) -> None:
        self._level = level
        self._lock = threading.Lock()

    def _write_line(self, record: dict[str, Any]) -> None:
        with self._lock:
            write_json(record)

    def say(self, *parts: Part) -> None:
        """No-op: the records have it."""

    def diagnostics(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            if _is_shown(diagnostic, self._level):
                self._write_line({"event": "Diagnosed", **diagnostic.to_dict()})

    def event(self, event: Event) -> None:
        """The event's fields; steps before a run are for people who watch."""
        if isinstance(event, Diagnosed):
            self.diagnostics([event.diagnostic])
        elif not isinstance(event, StepStarted):
            self._write_line({"event": type(event).__name__, **asdict(event)})

    def summary(self, results: RunResults) -> None:
        self._write_line({"event": "Summary", **counts(results), "CACHED": results.cached})


class TextPrinter:
    def __init__(self, level: LogLevel = LogLevel.INFO) -> None:
        self._level = level
        self._quiet = not level.informs
        self._lock = threading.Lock()
        self._progress_times: dict[str, float] = {}
        self._sums: dict[str, tuple[int, int]] = {}
        self._live = LiveProgress() if level.informs and fits() else None
        self._hints: dict[str, str] = {}
        # Of `engine start`, which prints for weeks.
        self._is_live = False
        self.errors: list[str] = []

    @property
    def for_people(self) -> bool:
        return self._level.warns

    def say(self, *parts: Part) -> None:
        if not self._quiet:
            self._write_line(*parts)

    def _write_line(self, *parts: Part) -> None:
        with self._lock:
            stamp = f"{time.strftime('%H:%M:%S')}  "
            write(stamp, *(indented(part, _STAMP) if isinstance(part, str) else part for part in parts))

    def diagnostics(self, diagnostics: Iterable[Diagnostic]) -> None:
        """`file:line:column: error: message [code]`, with the hint below; warnings not if only errors are wanted."""
        self._diagnostics(diagnostics, {})

    def _diagnostics(self, diagnostics: Iterable[Diagnostic], hints: dict[str, str]) -> None:
        printed = [diagnostic for diagnostic in diagnostics if _is_shown(diagnostic, self._level)]
        with self._lock:
            if not self._is_live:
                self.errors += [diagnostic.code for diagnostic in printed if diagnostic.is_error]
            findings = hints_once(collapse_repeated(printed), hints)
            if parts := [part for one in findings for part in ("\n", *diagnostic_text(one))]:
                write(*parts[1:], error=True)

    def event(self, event: Event) -> None:
        """The line of an event; on a terminal the live lines below it, too."""
        if self._live is not None:
            self._live.event(event)
        # The turns of `engine start` have lines of their own.
        self._is_live = self._is_live or isinstance(event, LiveStarted)
        if self._is_live and isinstance(
            event, (ModelStarted, BatchCommitted, ModelFinished, TestFinished, SinkFinished)
        ):
            self.say_if(turn_line(event))
            return
        self._run_event(event)

    def say_if(self, text: str) -> None:
        if text:
            self.say(text)

    def _run_event(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._hints.clear()
                self.say(f"Target {event.target}, {amount(event.total, 'node')}")
            case ModelStarted():
                self._row(event, "START", f"{event.kind} {event.relation}", "RUN", None)
            case BatchCommitted():
                self._progress(event)
            case ModelFinished() | TestFinished() if event.message == INTERRUPTED:
                self._row(event, "CANCELLED", _subject(event), f"CANCELLED in {event.seconds:.1f}s", event)
            case ModelFinished():
                self._finished(event)
            case TestFinished():
                word = _WORDS.get(event.status, event.status.value.upper())
                detail = f"{event.message} in {event.seconds:.1f}s" if event.message else f"in {event.seconds:.1f}s"
                detail = "(cached)" if event.cached else detail
                self._row(event, word, shown_name(event.node), f"{event.status.value.upper()} {detail}", event)
            case SinkFinished():
                self._delivered(event)
            case Diagnosed():
                self._diagnostics([event.diagnostic], {} if self._is_live else self._hints)
            case RunFinished():
                self.say(f"Finished in {event.seconds:.1f}s")
            case _:
                self._watch_event(event)

    def _watch_event(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._turn(event)
            case TurnFinished():
                self.say("Waiting for edits (Ctrl-C ends it)")
            case SessionRestarted():
                self.say(f"Starting another Spark session: {event.reason}")
            case _:
                self.say_if(live_line(event))

    def _turn(self, event: TurnStarted) -> None:
        """What changed; and that there is nothing to do, of which no other line follows."""
        file_list = ", ".join(event.files[:_FILES_NAMED])
        more = f" and {len(event.files) - _FILES_NAMED} more" if len(event.files) > _FILES_NAMED else ""
        changed = f"Changed: {file_list}{more}" if event.files else ""
        if event.due == 0:
            summary = f"nothing to do for {event.total} node{'' if event.total == 1 else 's'}"
            self.say(f"{changed}; {summary}" if changed else f"N{summary[1:]}")
        elif changed:
            self.say(changed)

    def _row(
        self,
        event: ModelStarted | Finished,
        word: str,
        subject: str,
        bracket: str,
        finished: Finished | None,
    ) -> None:
        if self._quiet and (finished is None or not self._is_bad(finished.status)):
            return
        head = f"{event.index} of {event.total} {word} {subject} "
        head = head.ljust(_WIDTH, ".") if len(head) < _WIDTH else head
        inside = Styled(bracket, _COLOURS[finished.status]) if finished is not None else bracket
        self._write_line(f"{head} [", inside, "]")

    def _is_bad(self, status: Status) -> bool:
        return status.failed or (status is Status.WARN and self._level.warns)

    def _finished(self, event: ModelFinished) -> None:
        word = _WORDS.get(event.status, event.status.value.upper())
        rows = "" if event.kind == "view" else f" {amount(event.rows_out, 'row')}"
        status = {
            Status.SUCCESS: f"OK{rows} in {event.seconds:.1f}s",
            Status.UNCHANGED: f"UNCHANGED ({event.message}) in {event.seconds:.1f}s",
            Status.SKIPPED: f"SKIP {event.message}",
        }.get(event.status, f"{event.status.value.upper()} in {event.seconds:.1f}s")
        self._row(event, word, f"{event.kind} {event.relation}", status, event)
        if event.kind == "streaming_table" and event.batches and not event.status.failed:
            self.say(f"    {stream_text(event)}")
        if removed_rows := removed_rows_text(event):
            self.say(f"    {removed_rows}")
        if event.note:
            self.say(f"    note: {event.note}")

    def _delivered(self, event: SinkFinished) -> None:
        deleted = f", {event.rows_deleted:,} deleted" if event.rows_deleted else ""
        status = {
            Status.SUCCESS: f"OK {amount(event.rows_out, 'row')}{deleted} in {event.seconds:.1f}s",
            Status.UNCHANGED: f"UNCHANGED (nothing to deliver) in {event.seconds:.1f}s",
            Status.SKIPPED: f"SKIP {event.message}",
        }.get(event.status, f"{event.status.value.upper()} in {event.seconds:.1f}s")
        word = _WORDS.get(event.status, event.status.value.upper())
        self._row(event, word, f"{shown_name(event.node)} ({event.place})", status, event)

    def _progress(self, event: BatchCommitted) -> None:
        rows_in, batches = self._sums.get(event.node, (0, 0))
        rows_in, batches = rows_in + event.rows_in, batches + 1
        self._sums[event.node] = (rows_in, batches)
        rate = event.rows_in / event.seconds if event.seconds else 0.0
        read = f"{amount(rows_in, 'row')} in {amount(batches, 'batch', 'batches')}, {rate:,.0f} rows/s"
        # There is none yet in the first micro-batch, and never one without event time.
        watermark = f", watermark {short_time(event.watermark)}" if event.watermark else ""
        text = f"{event.node.split('.', 1)[1]}: {read}{watermark}"
        if not self._quiet and time.monotonic() - self._progress_times.get(event.node, 0.0) > _PROGRESS_SECONDS:
            self._progress_times[event.node] = time.monotonic()
            self._write_line(f"    {text}")

    def summary(self, results: RunResults) -> None:
        numbers: dict[str, object] = {**counts(results)}
        if results.cached:
            numbers["PASS"] = f"{numbers['PASS']} ({results.cached} cached)"
        self._write_line("Done. " + " ".join(f"{key}={value}" for key, value in numbers.items()))


def _subject(event: ModelFinished | TestFinished) -> str:
    return f"{event.kind} {event.relation}" if isinstance(event, ModelFinished) else shown_name(event.node)


def _is_shown(diagnostic: Diagnostic, level: LogLevel) -> bool:
    if diagnostic.is_error:
        return True
    return level.warns if diagnostic.level is Level.WARNING else level.informs


def counts(results: RunResults) -> dict[str, int]:
    return {
        "PASS": results.count(Status.SUCCESS, Status.UNCHANGED, Status.PASS),
        "WARN": results.count(Status.WARN),
        "ERROR": results.count(Status.ERROR, Status.FAIL),
        "SKIP": results.count(Status.SKIPPED),
        "TOTAL": len(results.results),
    }


def diagnostic_text(diagnostic: Diagnostic) -> tuple[Part, ...]:
    level = Styled(f"{diagnostic.level.value}:", _LEVELS[diagnostic.level], bold=True)
    place = f"{one_line(str(diagnostic.location))}: " if diagnostic.location else ""
    message = indented(f" {diagnostic.message} [{diagnostic.code}]", _HINT)
    return (place, level, message, f"\n{indented(f'    {diagnostic.hint}', _HINT)}" if diagnostic.hint else "")


def stream_text(event: ModelFinished) -> str:
    """The beginner's question after a stream: what came in, what went out, what is held and why."""
    parts = [
        f"{amount(event.rows_in, 'row')} in", f"{event.rows_out:,} out{_merged(event)}", f"{event.late:,} late",
        *([amount(event.duplicates, "duplicate")] if event.duplicates else []),
        f"{event.state_rows:,} in state", amount(event.batches, "batch", "batches"),
    ]  # fmt: skip
    if event.watermark:
        parts.append(f"watermark {short_time(event.watermark)}")
    return ", ".join(parts)


def _merged(event: ModelFinished) -> str:
    parts = [f"{event.rows_updated:,} updated"] if event.rows_updated else []
    parts += [f"{event.rows_deleted:,} deleted"] if event.rows_deleted else []
    return f" ({', '.join(parts)})" if parts else ""


def removed_rows_text(event: ModelFinished) -> str:
    parts = [f"{amount(event.skipped, 'record')} skipped that are not rows"] if event.skipped else []
    if event.bad_records:
        parts += [f"{amount(n, 'bad record')} from {name}" for name, n in event.bad_records.items()]
    if event.failed_checks:
        parts += [f"{amount(n, 'row')} failed expectation {name}" for name, n in event.failed_checks.items()]
    if event.quarantined:
        parts.append(f"{amount(event.quarantined, 'row')} quarantined in {event.relation}__quarantine")
    return "; ".join(parts)


def short_time(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z").removesuffix(".000")


def collapse_repeated(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return findings of which one stands for all that say the same of other nodes, and one counts and names those.

    Machines get each.
    """
    same_findings: dict[tuple[str, ...], list[Diagnostic]] = defaultdict(list)
    for one in diagnostics:
        same_findings[_key(one)].append(one)
    printed: list[Diagnostic] = []
    for one in diagnostics:
        first, *repeated = same_findings[_key(one)]
        if len(repeated) < _FEW or not one.node:
            printed.append(one)
        elif one is first:
            names = ", ".join(f"'{repeat.node}'" for repeat in repeated[:_FEW])
            more = f"{len(repeated):,} other nodes: {names}, .. (all: --log-format json)"
            printed += [replace(one, hint=""), replace(one, message=f"the same of {more}", location=None)]
    return printed


def _key(diagnostic: Diagnostic) -> tuple[str, ...]:
    return diagnostic.code, diagnostic.level.value, diagnostic.message, _hint_of(diagnostic)


def hints_once(diagnostics: Sequence[Diagnostic], printed: dict[str, str]) -> Iterator[Diagnostic]:
    """Yield findings with equal hints only behind the last of those that follow each other.

    `printed`: hints given before, each with what it was given for; this function adds to it.
    """
    keys = [_hint_of(diagnostic) for diagnostic in diagnostics]
    for place, diagnostic in enumerate(diagnostics):
        key, subject = keys[place], str(diagnostic.location or diagnostic.node or "")
        if place + 1 < len(diagnostics) and diagnostics[place + 1].hint == diagnostic.hint:
            yield replace(diagnostic, hint="")
        elif printed.get(key):
            yield replace(diagnostic, hint=f"As for {printed[key]}." if diagnostic.hint else "")
        else:
            printed[key] = subject
            yield diagnostic


def _hint_of(diagnostic: Diagnostic) -> str:
    """A hint without the name of what it is for: the same for each model."""
    return diagnostic.hint.replace(diagnostic.node, "") if diagnostic.node else diagnostic.hint
