"""A batch model under test: its query once over the given rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.dialect import tokenize
from engine.compile.sql.lexer.tokens import TokenType
from engine.runtime.quality import expectations
from engine.runtime.sinks import table_setup
from engine.unit_tests.given_inputs import FedModel
from engine.unit_tests.step_metrics import StepMetrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLOCK = {
    "current_timestamp": "timestamp", "now": "timestamp", "localtimestamp": "timestamp_ntz",
    "current_date": "date", "curdate": "date",
}  # fmt: skip
_CALLED_ONLY = {"now", "curdate"}


def run_whole(session: SparkSession, fed_model: FedModel, now: str | None) -> tuple[DataFrame, StepMetrics]:
    """Return the rows of a batch model, and what failed its expectations; raises Spark's errors."""
    model = fed_model.model
    frame = table_setup.checked_frame(session, replace(model, sql=at_time(model.sql, now)) if now else model)
    checked = expectations.checked(frame, model.expectations)
    if not model.expectations:
        return frame, StepMetrics()
    quarantining = expectations.splits(model.expectations)
    quarantined = expectations.failing(checked, model.expectations).count() if quarantining else 0
    return expectations.passing(checked, model.expectations), StepMetrics(quarantined=quarantined)


def at_time(sql: str, now: str) -> str:
    """Rewrite a query to read a given time instead of the clock."""
    tokens = tokenize(sql)
    pieces, end = [], 0
    for index, token in enumerate(tokens):
        kind = _CLOCK.get(token.text.lower())
        called = _is(tokens, index + 1, TokenType.L_PAREN) and _is(tokens, index + 2, TokenType.R_PAREN)
        quoted = sql[token.start] in "`'\""
        if kind is None or quoted or _is(tokens, index - 1, TokenType.DOT) or _is(tokens, index + 1, TokenType.DOT):
            continue
        if not called and token.text.lower() in _CALLED_ONLY:
            continue
        pieces += [sql[end : token.start], f"cast('{now}' as {kind})"]
        end = tokens[index + 2].end + 1 if called else token.end + 1
    return "".join([*pieces, sql[end:]])


def _is(tokens: list[Token], index: int, kind: TokenType) -> bool:
    return 0 <= index < len(tokens) and tokens[index].token_type is kind
