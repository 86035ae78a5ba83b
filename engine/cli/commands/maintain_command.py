"""`engine maintain`: tables looked after, a line each."""

from __future__ import annotations

from dataclasses import fields

from engine.api import Selection
from engine.cli.command_setup import CommandSettings, Warnings, compiled, log_file, selected
from engine.cli.console.safe_output import Styled, write_json
from engine.compile import Model
from engine.errors import UsageError
from engine.runtime.operations.maintain import ORPHANS_AFTER, Care, Cared, maintain
from engine.times import duration_seconds, parse_duration

_DAY = 24 * 60 * 60


def care_for(
    chosen: CommandSettings,
    wanted: Selection,
    older_than: str | None,
    orphans: str | None,
    log_format: str,
    *,
    dry_run: bool,
) -> bool:
    """Maintain the tables of the selected models; False if something could not be done.

    Raises:
        UsageError: a duration that is none, or orphans of less than a day, at which a writer may be.
    """
    age = _seconds("--older-than", older_than)
    orphans_after = _seconds("--orphans-older-than", orphans)
    if orphans_after is not None and orphans_after < _DAY:
        hint = "Use 1 day or more: a younger file may belong to a commit in progress."
        raise UsageError("usage", "--orphans-older-than is less than a day", hint)
    care = Care(dry_run, age, ORPHANS_AFTER if orphans_after is None else orphans_after)
    with log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        nodes = (result.manifest.nodes[i] for i in selected(chosen, result.manifest, wanted, daily=True))
        models = [node for node in nodes if isinstance(node, Model)]
        good, number = True, 0
        for done in maintain(result.manifest, result.target, models, chosen.target_dir, care):
            number += 1
            good = good and not done.error
            _print(chosen, done, dry_run=dry_run, as_json=log_format == "json")
        if not number:
            chosen.out.say("No table of these models exists yet; nothing to maintain")
    return good


def _seconds(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    parsed = parse_duration(text)
    if parsed is None:
        raise UsageError(
            "usage", f"{option} is not a duration: {text}", "Write a number and a unit: '5 days', '12 hours'."
        )
    return round(duration_seconds(parsed))


def _print(chosen: CommandSettings, done: Cared, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        record = {"event": "TableMaintained", "node": done.model.id, "dry_run": dry_run, **_record(done)}
        write_json(record)
        return
    word = Styled("ERROR", "red") if done.error else Styled("DRY RUN" if dry_run else "DONE", "green")
    chosen.out.say(word, f"  {done.table}: {done.error or _words(done, dry_run=dry_run)}")
    if done.kept_for and not done.error:
        chosen.out.say(f"      older snapshots stay for {', '.join(done.kept_for)}, which has not read them yet")


def _words(done: Cared, *, dry_run: bool) -> str:
    if done.waits:
        return "skipped: its staged rows have not been tested"
    parts = [
        done.joined and f"{done.joined} small files{'' if dry_run else f' into {done.into}'}",
        done.manifests and f"{done.manifests} manifests rewritten",
        done.expired and f"{done.expired} snapshots expired",
        done.orphans and f"{done.orphans} orphan files removed",
    ]
    text = ", ".join(part for part in parts if part)
    return (f"would do: {text}" if dry_run else text) if text else "nothing to do"


def _record(done: Cared) -> dict[str, object]:
    return {f.name: getattr(done, f.name) for f in fields(done) if f.name != "model"}
