"""`engine source freshness`: how new the rows of sources are, against their bounds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from engine.api import Selection
from engine.cli.command_setup import CommandSettings, Warnings, compiled, log_file, selected, warn
from engine.cli.console.safe_output import Styled, write_json
from engine.compile import Manifest, Source
from engine.compile.artifacts.write_artifacts import write_text
from engine.docs.site.freshness_status import FILE, AgeBound, Fresh, FreshnessStatus, freshness_text
from engine.runtime.operations.source_freshness import FreshnessVerdict, SourceLook, look
from engine.secrets import scrub
from engine.target_folder import write_report
from engine.times import SECONDS

_COLOURS = {
    FreshnessVerdict.PASS: "green",
    FreshnessVerdict.WARN: "yellow",
    FreshnessVerdict.ERROR: "red",
    FreshnessVerdict.FAILED: "red",
}
_STEPS = ("day", "hour", "minute")


def show_freshness(chosen: CommandSettings, wanted: Selection, output: Path | None, log_format: str) -> bool:
    """Look at the selected sources that have bounds, and write target/sources.json.

    Returns:
        False if one is too old, or cannot be read.
    """
    begin = time.monotonic()
    with log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        nodes = (result.manifest.nodes[i] for i in _chosen(chosen, result.manifest, wanted))
        sources = [node for node in nodes if isinstance(node, Source) and node.freshness is not None]
        if not sources:
            chosen.out.say("No source has 'freshness'; nothing to check")
            return True
        statuses = []
        for number, seen in enumerate(look(sources, result.manifest, result.target, chosen.root, chosen.target_dir), 1):
            _print(chosen, seen, number, len(sources), as_json=log_format == "json")
            statuses.append(seen)
    text = freshness_text(map(_record, statuses), result.manifest.project, time.monotonic() - begin)
    if output is None:
        write_text(chosen.target_dir, FILE, text)
    else:
        write_report(output, scrub(text).encode("utf-8", "replace"), chosen.root)
    return all(seen.verdict in {FreshnessVerdict.PASS, FreshnessVerdict.WARN} for seen in statuses)


def _chosen(chosen: CommandSettings, manifest: Manifest, wanted: Selection) -> list[str]:
    if wanted.select or wanted.exclude or wanted.selector:
        return selected(chosen, manifest, wanted, daily=True)
    nodes = [source.id for source in manifest.sources]
    warn(chosen, manifest, nodes, daily=True)
    return nodes


def _record(seen: SourceLook) -> FreshnessStatus:
    bounds = seen.source.freshness
    warn, error = (bounds.warn_after, bounds.error_after) if bounds else (None, None)
    return FreshnessStatus(
        source=seen.source.id,
        status=Fresh(seen.verdict.value),
        looked_at=seen.at,
        newest=seen.newest,
        warn_after=AgeBound(warn.count, warn.period) if warn else None,
        error_after=AgeBound(error.count, error.period) if error else None,
        filter=bounds.filter if bounds else None,
        seconds=seen.seconds,
        error=seen.error,
    )


def _print(chosen: CommandSettings, seen: SourceLook, number: int, total: int, *, as_json: bool) -> None:
    verdict, name = seen.verdict, seen.source.name
    age = (seen.at - seen.newest).total_seconds() if seen.newest else None
    if as_json:
        record: dict[str, Any] = {
            "event": "FreshnessFinished",
            "node": seen.source.id,
            "status": verdict.value,
            "age_seconds": age,
        }
        record |= {"newest": seen.newest.isoformat() if seen.newest else None, "error": seen.error or None}
        record |= {"ahead": seen.ahead, "farthest": seen.farthest} if seen.ahead else {}
        record |= {"waiting": dict(seen.waiting)} if seen.waiting else {}
        write_json(record)
        return
    detail = f"newest {seen.newest:%Y-%m-%d %H:%M:%S}, {_age(age)}" if seen.newest and age is not None else seen.error
    detail += f"; {_ahead(seen)}" if seen.ahead else ""
    waits = ", ".join(f"{count:,} for {model}" for model, count in seen.waiting.items() if count)
    detail += f"; offsets not read yet: {waits}" if waits else ""
    word = Styled(verdict.value.upper(), _COLOURS[verdict])
    chosen.out.say(f"{number} of {total}  ", word, f"  {name}: {detail}")


def _ahead(seen: SourceLook) -> str:
    bound = seen.source.freshness.max_future if seen.source.freshness else ""
    rows = f"{seen.ahead:,} row{' does' if seen.ahead == 1 else 's do'} not count"
    return f"{rows}, more than {bound} ahead of the clock: up to {seen.farthest}"


def _age(seconds: float) -> str:
    """`3 hours old`."""
    if seconds < 0:
        return "ahead of the clock"
    count, unit = next(((int(seconds // SECONDS[unit]), unit) for unit in _STEPS if seconds >= SECONDS[unit]), (0, ""))
    return f"{count} {unit}{'' if count == 1 else 's'} old" if unit else "less than a minute old"
