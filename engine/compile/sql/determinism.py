"""Whether a query gives the same rows each time over the same input: functions that are not Spark's may do anything."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.types.builtin_functions import BUILTIN

_CALLS = (
    exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentUser, exp.Localtimestamp, exp.Rand, exp.Randn,
    exp.Randstr, exp.SessionUser, exp.Shuffle, exp.Uniform, exp.Uuid,
)  # fmt: skip
_RANDOM = (exp.Rand, exp.Randn, exp.Uuid, exp.Shuffle)
# Functions that sqlglot knows by name only.
_NAMES = {
    "getdate", "input_file_block_length", "input_file_block_start", "input_file_name", "java_method",
    "monotonically_increasing_id", "now", "reflect", "spark_partition_id", "sysdate", "try_reflect", "user", "version",
}  # fmt: skip
# Spark reads it without brackets, and sqlglot takes it for a column.
_WORDS = {"current_time"}
# Spark's words for times: a string that is cast to a time, also by a comparison with one, is read so (measured).
_TIMES = {"now", "today", "tomorrow", "yesterday"}
_STRINGS = (exp.Select, exp.Alias, exp.Tuple, exp.Like, exp.ILike, exp.Concat, exp.DPipe)
_SUSPECTS = (*_CALLS, exp.Anonymous, exp.Column, exp.StrToUnix, exp.TableSample, exp.Literal)
_EQUAL = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.In)


def draws(node: exp.Expr) -> bool:
    return node.find(*_RANDOM) is not None


def select_draws(node: exp.Expr) -> bool:
    """Whether an item of a SELECT does."""
    return isinstance(node, exp.Select) and any(map(draws, node.expressions))


def deterministic(nodes: QueryNodes) -> bool:
    """Whether parsed SQL neither reads the clock nor draws random numbers, by its calls of Spark's functions."""
    return not any(map(_varies, nodes.every(*_SUSPECTS)))


def deterministic_text(*expressions: str) -> bool:
    """The same of SQL expressions that have been checked; one that sqlglot cannot read counts as not."""
    try:
        trees = [tree for text in expressions for tree in parse_tokens(tokenize(text), text)]
    except ValueError:
        return False
    return all(deterministic(QueryNodes.of_tree(tree)) for tree in trees if tree is not None)


def _varies(node: exp.Expr) -> bool:
    if isinstance(node, _CALLS):
        return True
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _NAMES or node.name.lower() not in BUILTIN
    if isinstance(node, exp.Column):
        return not node.table and not node.this.args.get("quoted") and node.name.lower() in _WORDS
    if isinstance(node, exp.StrToUnix):
        return node.this is None
    if isinstance(node, exp.TableSample):
        return node.args.get("seed") is None
    return isinstance(node, exp.Literal) and node.is_string and node.name.strip().lower() in _TIMES and _is_time(node)


def _is_time(node: exp.Literal) -> bool:
    """Whether Spark may read one of its words for times as a time; if that is not known, it does."""
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return not parent.to.is_type(*exp.DataType.TEXT_TYPES)
    if isinstance(parent, _EQUAL):
        # No time equals this moment.
        return node.name.strip().lower() != "now"
    if isinstance(parent, exp.If | exp.Case):
        return not any(value.is_string and value.name.strip().lower() not in _TIMES for value in _values(parent))
    return not isinstance(parent, _STRINGS)


def _values(node: exp.Expr) -> list[exp.Expr]:
    """What a CASE or IF can give."""
    if isinstance(node, exp.If) and isinstance(node.parent, exp.Case):
        node = node.parent
    branches = node.args.get("ifs") or [node]
    values = [*(branch.args.get("true") for branch in branches), node.args.get("default"), node.args.get("false")]
    return [value for value in values if value is not None]
