"""Reading how a model is run: trigger, schedule, hooks and the like."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot.errors import SqlglotError

from engine.compile.config.session_settings import WAP_HINT, WAP_MESSAGE, sets_wap
from engine.compile.config.winning_values import MergedSettings
from engine.compile.nodes.model_settings import Operation, PersistDocs, StateProvider, Trigger, TriggerKind
from engine.compile.sql.dialect import tokenize
from engine.compile.sql.token_checks import VARIABLE, VARIABLE_HINT, variable
from engine.compile.templates.template_names import THIS
from engine.compile.types import cron
from engine.errors import Diagnostic, Level
from engine.project.yaml_section import Section, quote_text
from engine.schema.stream_keys import PERSIST_DOCS, STATE_STORE
from engine.times import duration_seconds, parse_duration

_TABLE = re.compile(r"\w+(?:\.\w+)*")
_EVERY = re.compile(r"every\s+(.+)", re.DOTALL)
_TRIGGERS = "Write 'every 30 seconds', or remove it: micro-batches then follow each other without a pause."
_CONTINUOUS = (
    "Continuous processing supports neither aggregates, joins nor exactly-once tables: write 'every 1 second', or "
    "remove it."
)
_ONCE = (
    "Remove it (Spark has deprecated it): build and run read all unread data in several micro-batches, and close "
    "windows at the end."
)
_CRON = "Write minute, hour, day of the month, month and day of the week: '0 6 * * mon-fri', or '0-59/5 * * * *'."


def read_operation(settings: MergedSettings) -> Operation:
    provider = _provider(settings.get("state_store"))
    return Operation(
        trigger=_trigger(settings.get("trigger")),
        schedule=_schedule(settings.get("schedule")),
        stalled_after=_stalled_after(settings.get("stalled_after")),
        full_refresh=settings.keys["full_refresh"].boolean(otherwise=True) if "full_refresh" in settings.keys else None,
        keep_previous=_keep_previous(settings.get("keep_previous")),
        pre_hook=_hooks(settings.get("pre_hook")),
        post_hook=_hooks(settings.get("post_hook")),
        explain=settings.boolean("explain"),
        persist_docs=_persist_docs(settings.get("persist_docs")),
        renamed_from=_renamed_from(settings.get("renamed_from")),
        state_provider=provider,
    )


def with_table_name(operation: Operation, table: str) -> Operation:
    mine = f"`{THIS}`"
    return replace(
        operation,
        pre_hook=tuple(sql.replace(mine, table) for sql in operation.pre_hook),
        post_hook=tuple(sql.replace(mine, table) for sql in operation.post_hook),
    )


def read_state_partitions(section: Section | None) -> int | None:
    if section is None:
        return None
    section.check_keys(STATE_STORE)
    partitions = section.child("partitions")
    return partitions.integer() if partitions else None


def _provider(section: Section | None) -> StateProvider | None:
    part = section.child("provider") if section else None
    value = part.choice(*StateProvider) if part else ""
    return StateProvider(value) if value in set(StateProvider) else None


def _trigger(section: Section | None) -> Trigger:
    text = " ".join(section.text().lower().split()) if section else ""
    if section is None or not text or text == TriggerKind.FAST:
        return Trigger()
    if text == TriggerKind.ONCE:
        message = "trigger 'once' reads all unread data in one micro-batch, which changes which rows are late"
        section.diagnostics.append(
            Diagnostic("trigger-once", message, _ONCE, Level.WARNING, section.node, section.place)
        )
        return Trigger(TriggerKind.ONCE)
    if text.startswith("continuous"):
        section.report("trigger-continuous", f"the trigger {quote_text(text)} cannot be run", _CONTINUOUS)
        return Trigger()
    every = _EVERY.fullmatch(text)
    interval = parse_duration(every[1]) if every else None
    if interval is None:
        _no_trigger(section, text, every)
        return Trigger()
    return Trigger(TriggerKind.EVERY, interval) if duration_seconds(interval) else Trigger()


def _no_trigger(section: Section, text: str, every: re.Match[str] | None) -> None:
    if every:
        hint = "Write a number and a unit: every 30 seconds, every 10 minutes."
        section.report("bad-duration", f"{quote_text(every[1])} is not a duration", hint)
        return
    hint = f"Write 'every {text}'." if parse_duration(text) else _TRIGGERS
    if text.replace("_", "").replace(" ", "") == "availablenow":
        hint = "Remove it: build and run always do that."
    section.report("bad-value", f"{quote_text(text)} is not a trigger", hint)


def _schedule(section: Section | None) -> str | None:
    text = " ".join(section.text().split()) if section else ""
    if section is None or not text:
        return None
    fault = cron.fault(text)
    if fault:
        section.report("schedule-syntax", f"{quote_text(text)} is not a schedule: {fault}", _CRON)
        return None
    return text


def _stalled_after(section: Section | None) -> str | None:
    return (section.positive_duration() or None) if section else None


def _keep_previous(section: Section | None) -> str:
    return (section.duration() if section else "") or Operation().keep_previous


def _renamed_from(section: Section | None) -> str:
    text = section.text().strip() if section else ""
    if section is not None and text and not _TABLE.fullmatch(text):
        hint = "Write the name of the model, or of its table with or without its schema: renamed_from: main.old_orders."
        section.report("bad-value", f"{quote_text(text)} is not the name of a model or table", hint)
        return ""
    return text


def _hooks(section: Section | None) -> tuple[str, ...]:
    texts = []
    for item in section.items() if section else ():
        text = item.text().strip()
        if text and not _is_sql(text):
            item.report("sql-syntax", f"{quote_text(text)} cannot be read", "Write one SQL statement in each item.")
        elif variable_name := variable(text):
            item.report("spark-variable", VARIABLE.format(variable_name), VARIABLE_HINT)
        elif sets_wap(text):
            item.report("setting-wap", WAP_MESSAGE.format("this hook"), WAP_HINT)
        elif text:
            texts.append(text.rstrip(";"))
    return tuple(texts)


def _is_sql(text: str) -> bool:
    """Whether the text is one statement, as far as sqlglot knows: Spark has more statements."""
    try:
        tokens = tokenize(text.rstrip(";"))
    except SqlglotError:
        return False
    return bool(tokens) and all(token.text != ";" for token in tokens)


def _persist_docs(section: Section | None) -> PersistDocs:
    if section is None:
        return PersistDocs()
    if not isinstance(section.value, dict):
        is_persisted = section.boolean(otherwise=True)
        return PersistDocs(is_persisted, is_persisted)
    section.check_keys(PERSIST_DOCS)
    relation, columns = section.child("relation"), section.child("columns")
    return PersistDocs(
        relation.boolean(otherwise=True) if relation else False,
        columns.boolean(otherwise=True) if columns else False,
    )
