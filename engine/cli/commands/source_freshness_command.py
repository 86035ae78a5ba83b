"""`engine source freshness`: how new the rows of sources are, against their bounds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from engine.api import Selection
from engine.cli.command_setup import (
    CommandSettings,
    Warnings,
    compile_and_report,
    log_file,
    print_warnings,
    select_and_report,
)
from engine.cli.console.safe_output import Styled, write_json
from engine.compile import Manifest, Source
from engine.compile.artifacts.write_artifacts import write_text
from engine.docs.site.freshness_status import FILE, AgeBound, Fresh, FreshnessStatus, freshness_text
from engine.runtime.operations.source_freshness import FreshnessVerdict, SourceFreshness, check_freshness
from engine.secrets.scrubber import scrub
from engine.target_folder import write_report
from engine.times import SECONDS, in_words

_COLOURS = {
    FreshnessVerdict.PASS: "green",
    FreshnessVerdict.WARN: "yellow",
    FreshnessVerdict.ERROR: "red",
    FreshnessVerdict.FAILED: "red",
}
_STEPS = ("day", "hour", "minute")


def show_freshness(settings: CommandSettings, selection: Selection, output: Path | None, log_format: str) -> bool:
    """Look at the selected sources that have bounds, and write target/sources.json.

    Returns:
        False if one is too old, or cannot be read.
    """
    begin = time.monotonic()
    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        nodes = (result.manifest.nodes[i] for i in _selected_sources(settings, result.manifest, selection))
        sources = [node for node in nodes if isinstance(node, Source) and node.freshness is not None]
        if not sources:
            settings.out.say("No source has 'freshness'; nothing to check")
            return True
        statuses = []
        for number, checked in enumerate(
            check_freshness(sources, result.manifest, result.target, settings.root, settings.target_dir), 1
        ):
            _print(settings, checked, number, len(sources), as_json=log_format == "json")
            statuses.append(checked)
    text = freshness_text(map(_record, statuses), result.manifest.project, time.monotonic() - begin)
    if output is None:
        write_text(settings.target_dir, FILE, text)
    else:
        write_report(output, scrub(text).encode("utf-8", "replace"), settings.root)
    return all(checked.verdict in {FreshnessVerdict.PASS, FreshnessVerdict.WARN} for checked in statuses)


def _selected_sources(settings: CommandSettings, manifest: Manifest, selection: Selection) -> list[str]:
    if selection.select or selection.exclude or selection.selector:
        return select_and_report(settings, manifest, selection, daily=True)
    nodes = [source.id for source in manifest.sources]
    print_warnings(settings, manifest, nodes, daily=True)
    return nodes


def _record(checked: SourceFreshness) -> FreshnessStatus:
    bounds = checked.source.freshness
    warn, error = (bounds.warn_after, bounds.error_after) if bounds else (None, None)
    return FreshnessStatus(
        source=checked.source.id,
        status=Fresh(checked.verdict.value),
        looked_at=checked.at,
        newest=checked.newest,
        warn_after=AgeBound(warn.count, warn.period) if warn else None,
        error_after=AgeBound(error.count, error.period) if error else None,
        filter=bounds.filter if bounds else None,
        seconds=checked.seconds,
        error=checked.error,
    )


def _print(settings: CommandSettings, checked: SourceFreshness, number: int, total: int, *, as_json: bool) -> None:
    verdict, name = checked.verdict, checked.source.name
    age = (checked.at - checked.newest).total_seconds() if checked.newest else None
    if as_json:
        record: dict[str, Any] = {
            "event": "FreshnessFinished",
            "node": checked.source.id,
            "status": verdict.value,
            "age_seconds": age,
        }
        record |= {"newest": checked.newest.isoformat() if checked.newest else None, "error": checked.error or None}
        record |= {"ahead": checked.ahead, "farthest": checked.farthest} if checked.ahead else {}
        record |= {"waiting": dict(checked.waiting)} if checked.waiting else {}
        write_json(record)
        return
    detail = (
        f"newest {checked.newest:%Y-%m-%d %H:%M:%S}, {_age(age)}"
        if checked.newest and age is not None
        else checked.error
    )
    detail += f"; {_ahead(checked)}" if checked.ahead else ""
    waits = ", ".join(f"{count:,} for {model}" for model, count in checked.waiting.items() if count)
    detail += f"; offsets not read yet: {waits}" if waits else ""
    word = Styled(verdict.value.upper(), _COLOURS[verdict])
    settings.out.say(f"{number} of {total}  ", word, f"  {name}: {detail}")


def _ahead(checked: SourceFreshness) -> str:
    bound = in_words(checked.source.freshness.max_future) if checked.source.freshness else ""
    rows = f"{checked.ahead:,} row{' does' if checked.ahead == 1 else 's do'} not count"
    return f"{rows}, more than {bound} ahead of the clock: up to {checked.farthest}"


def _age(seconds: float) -> str:
    """`3 hours old`."""
    if seconds < 0:
        return "ahead of the clock"
    count, unit = next(((int(seconds // SECONDS[unit]), unit) for unit in _STEPS if seconds >= SECONDS[unit]), (0, ""))
    return f"{count} {unit}{'' if count == 1 else 's'} old" if unit else "less than a minute old"
