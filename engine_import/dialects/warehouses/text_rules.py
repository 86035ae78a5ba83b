"""Rules for strings, regular expressions, numbers and aggregates that several warehouses share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine_import.dialects.syntax.call import Call
from engine_import.dialects.syntax.literals import quoted
from engine_import.dialects.syntax.warehouse import Noted

_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_GROUP = re.compile(r"(?:\\.|\[(?:\\.|[^\]\\])*(?:\]|\\?\Z))|\((?!\?)|\(\?P?<(?![=!])")
FIRST_ONLY: Final = "replaces the first match only; Spark's replaces all of them"


def split_by_text(call: Call) -> str | None:
    """Translate split(text, delimiter): Spark's delimiter is a regular expression."""
    if len(call) == 1:
        return call.fill("split({0}, ',')")
    if len(call) != 2:  # noqa: PLR2004 - text and delimiter
        return None
    value = call[1].value
    if value is None:
        return call.fill("split({0}, concat('\\\\Q', {1}, '\\\\E'))")
    if not _SPECIAL.search(value):
        return call.fill("split({0}, {1})")
    return call.fill("split({0}, {p})", p=quoted(_SPECIAL.sub(lambda sign: f"\\{sign[0]}", value)))


def groups(pattern: str) -> int:
    return sum(match[0].startswith("(") for match in _GROUP.finditer(pattern))


def group_or_null(call: Call) -> str | Noted | None:
    """Translate regexp_extract(): the group if there is one, else the match; NULL without a match."""
    if len(call) != 2:  # noqa: PLR2004 - text and pattern
        return None
    pattern = call[1].value
    if pattern is None:
        return Noted(
            call.fill("regexp_substr({0}, {1})"), "a pattern with a group returns the group there, and the match here"
        )
    if not groups(pattern):
        return call.fill("regexp_substr({0}, {1})")
    return call.fill("if(regexp_like({0}, {1}), regexp_extract({0}, {1}, 1), null)")


def all_groups(call: Call) -> str | Noted | None:
    """Translate regexp_extract_all(): the groups if there is one, else the matches."""
    if len(call) != 2 or call[1].value is None:  # noqa: PLR2004 - text and pattern
        return None
    return call.fill("regexp_extract_all({0}, {1}, {g})", g=str(min(groups(call[1].value), 1)))


def replaced(*, first_only: bool) -> Callable[[Call], str | Noted | None]:
    r"""A rule for regexp_replace(): `\1` is `$1` in Spark.

    Args:
        first_only: without the flag g the first match is replaced only.
    """

    def rule(call: Call) -> str | Noted | None:
        if len(call) not in (3, 4) or (len(call) == 4 and not first_only):  # noqa: PLR2004 - the fourth are flags
            return None
        flags = call[3].value if len(call) == 4 else ""  # noqa: PLR2004 - the same
        if flags is None or set(flags) - {"g", "i"}:
            return None
        pattern = call[1].text if "i" not in flags else call.fill("concat('(?i)', {1})")
        new = call[2].text
        if call[2].value is not None:
            value = call[2].value.replace("\\\\", "\\")
            if re.search(r"\\\d|\$", value):
                new = quoted(re.sub(r"\\(\d)", r"$\1", value.replace("$", "\\$")))
        text = call.fill("regexp_replace({0}, {p}, {n})", p=pattern, n=new)
        return Noted(text, FIRST_ONLY) if first_only and "g" not in flags else text

    return rule


def from_position(call: Call) -> Noted | None:
    """Translate substring(), where a position below 1 may be another one."""
    position = call[1].nodes if len(call) > 1 else ()
    if not position or (len(position) == 1 and position[0].kind == "number" and position[0].text != "0"):
        return None
    return Noted(f"{call.name}({call.fill('{*}')})", "a position below 1 counts in another way here")


def of_all(function: str) -> Callable[[Call], str | None]:
    """Return a rule for greatest() and least() where one NULL makes all of it NULL; Spark's skip NULLs."""

    def rule(call: Call) -> str | None:
        if len(call) == 1:
            return call[0].text
        known = " and ".join(f"{argument.text} is not null" for argument in call.arguments)
        return call.fill(f"case when {{k}} then {function}({{*}}) end", k=known)

    return rule


def ordered_array(call: Call) -> str | None:
    """Translate array_agg([DISTINCT] x [IGNORE NULLS] [ORDER BY k] [LIMIT n]): Spark sorts the array afterwards."""
    clauses = _clauses(call)
    if clauses is None or not (clauses.keys or clauses.limit or clauses.ignores):
        return None
    if clauses.keys and clauses.falls is None:
        return None
    order = ", false" if clauses.falls else ""
    by_itself = [key.casefold() for key in clauses.keys] in (
        [],
        [clauses.value.casefold()],
        [clauses.value.rpartition(".")[2].casefold()],
    )
    if by_itself:
        made = f"{'collect_set' if clauses.distinct else 'collect_list'}({{v}})"
        made = f"sort_array({made}{order})" if clauses.keys else made
    elif clauses.distinct:
        return None
    else:
        known = " filter (where {v} is not null)" if clauses.ignores else ""
        made = f"transform(sort_array(collect_list(struct({{k}}, {{v}} as v_)){known}{order}), e -> e.v_)"
    if clauses.limit:
        made = f"slice({made}, 1, {{n}})"
    return call.fill(made, v=clauses.value, k=", ".join(clauses.keys), n=clauses.limit)


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The clauses of an aggregate; the order is None if directions are mixed."""

    value: str
    distinct: bool
    ignores: bool
    keys: tuple[str, ...]
    falls: bool | None
    limit: str


def _clauses(call: Call) -> _Clauses | None:
    if not len(call):
        return None
    first, last = call[0].nodes, call[len(call) - 1].nodes
    words = [node.word for node in first]
    start = int(words[:1] == ["distinct"])
    end = min(
        (words.index(word) for word in ("ignore", "respect", "order", "limit") if word in words), default=len(first)
    )
    if end == start or (len(call) > 1 and "order" not in words):
        return None
    limits = [node.word for node in last]
    at = limits.index("limit") if "limit" in limits else len(last)
    parts = [argument.nodes for argument in call.arguments]
    parts[-1] = last[:at]
    parts[0] = parts[0][words.index("order") + 2 :] if "order" in words else []
    directions = {part[-1].word == "desc" for part in parts if part}
    if any(node.word == "nulls" for part in parts for node in part):
        return None
    keys = tuple(call.write([node for node in part if node.word not in ("asc", "desc")]) for part in parts if part)
    falls = None if len(directions) > 1 else True in directions
    limit = call.write(last[at + 1 :])
    return _Clauses(call.write(first[start:end]), start == 1, "ignore" in words, keys, falls, limit)


def joined_texts(default: str) -> Callable[[Call], str | None]:
    """Return a rule that writes string_agg(x[, delimiter] [ORDER BY k]) as listagg()."""

    def rule(call: Call) -> str | None:
        if not 1 <= len(call) <= 2:  # noqa: PLR2004 - text and delimiter
            return None
        last = list(call[len(call) - 1].nodes)
        words = [node.word for node in last]
        at = words.index("order") if "order" in words else len(last)
        if "limit" in words or ("order" in words and at == 0):
            return None
        first = call.write(last[:at]) if len(call) == 1 else call[0].text
        delimiter = quoted(default) if len(call) == 1 else call.write(last[:at])
        order = call.write(last[at:]) if at < len(last) else ""
        template = "listagg({v}, {d})" + (" within group ({k})" if order else "")
        return call.fill(template, v=first, d=delimiter, k=order)

    return rule
