"""`engine maintain`: tables looked after, a line each."""

from __future__ import annotations

from dataclasses import fields

from engine.api import Selection
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, log_file, select_and_report
from engine.cli.console.safe_output import Styled, write_json
from engine.compile import Model
from engine.errors import UsageError
from engine.runtime.operations.maintain import ORPHANS_AFTER, Care, Cared, maintain
from engine.times import duration_seconds, parse_duration

_DAY = 24 * 60 * 60


def maintain_models(
    settings: CommandSettings,
    selection: Selection,
    older_than: str | None,
    orphans: str | None,
    log_format: str,
    *,
    dry_run: bool,
) -> bool:
    """Maintain the tables of the selected models; False if something could not be done.

    Raises UsageError: a duration that is none, or orphans of less than a day, at which a writer may be.
    """
    age = _seconds("--older-than", older_than)
    orphans_after = _seconds("--orphans-older-than", orphans)
    if orphans_after is not None and orphans_after < _DAY:
        hint = "Use 1 day or more: a younger file may belong to a commit in progress."
        raise UsageError("usage", "--orphans-older-than is less than a day", hint)
    maintenance = Care(dry_run, age, ORPHANS_AFTER if orphans_after is None else orphans_after)
    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        nodes = (result.manifest.nodes[i] for i in select_and_report(settings, result.manifest, selection, daily=True))
        models = [node for node in nodes if isinstance(node, Model)]
        succeeded, number = True, 0
        for maintained in maintain(result.manifest, result.target, models, settings.target_dir, maintenance):
            number += 1
            succeeded = succeeded and not maintained.error
            _print(settings, maintained, dry_run=dry_run, as_json=log_format == "json")
        if not number:
            settings.out.say("No table of these models exists yet; nothing to maintain")
    return succeeded


def _seconds(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    parsed = parse_duration(text)
    if parsed is None:
        raise UsageError(
            "usage", f"{option} is not a duration: {text}", "Write a number and a unit: '5 days', '12 hours'."
        )
    return round(duration_seconds(parsed))


def _print(settings: CommandSettings, maintained: Cared, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        record = {"event": "TableMaintained", "node": maintained.model.id, "dry_run": dry_run, **_record(maintained)}
        write_json(record)
        return
    word = Styled("ERROR", "red") if maintained.error else Styled("DRY RUN" if dry_run else "DONE", "green")
    settings.out.say(word, f"  {maintained.table}: {maintained.error or _words(maintained, dry_run=dry_run)}")
    if maintained.kept_for and not maintained.error:
        settings.out.say(
            f"      older snapshots stay for {', '.join(maintained.kept_for)}, which has not read them yet"
        )


def _words(maintained: Cared, *, dry_run: bool) -> str:
    if maintained.waits:
        return "skipped: its staged rows have not been tested"
    parts = [
        maintained.joined and f"{maintained.joined} small files{'' if dry_run else f' into {maintained.into}'}",
        maintained.manifests and f"{maintained.manifests} manifests rewritten",
        maintained.expired and f"{maintained.expired} snapshots expired",
        maintained.orphans and f"{maintained.orphans} orphan files removed",
    ]
    text = ", ".join(part for part in parts if part)
    return (f"would do: {text}" if dry_run else text) if text else "nothing to do"


def _record(maintained: Cared) -> dict[str, object]:
    return {f.name: getattr(maintained, f.name) for f in fields(maintained) if f.name != "model"}
