"""QUALIFY: a filter on window functions, which is a filter around the SELECT in Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine_import.dialects.syntax.script import Script, Written
from engine_import.dialects.syntax.sql_tree import Node

_SETS = frozenset(("union", "intersect", "except", "minus"))
_BEHIND = _SETS | {"order", "limit", "window", ";"}
_COLUMN = "qualify_"
_NOT_TRANSLATED = "QUALIFY is not translated: {}. Filter on the window function in an outer SELECT"


def with_subquery(script: Script, made: list[Written], write: Callable[[Script, Sequence[Node]], str]) -> None:
    """Write each SELECT .. QUALIFY c as a SELECT around it that filters on a column with c."""
    while (at := next((at for at, entry in enumerate(made) if entry.word == "qualify"), -1)) >= 0:
        reason = _wrapped(script, made, at, write)
        if reason:
            made[at] = Written(made[at].gap, made[at].text + script.note(_NOT_TRANSLATED.format(reason)), (), "other")


def _wrapped(script: Script, made: list[Written], at: int, write: Callable[[Script, Sequence[Node]], str]) -> str:
    """Wrap the SELECT of a QUALIFY; return the reason if it cannot be wrapped."""
    words = [entry.word for entry in made]
    begin = _last(words, "select", at)
    start = _last(words[:at], "from", at)
    end = next((place for place in range(at + 1, len(words)) if words[place] in _BEHIND), len(words))
    if (
        begin < 0
        or start < begin
        or end == at + 1
        or any(words[place] in _SETS and words[place - 1] != "*" for place in range(begin, at))
    ):
        return "its SELECT is not clear"
    start = next(place for place in range(begin, at) if words[place] == "from" and words[place - 1] != "distinct")
    places = [made[place].nodes[0].start for place in (begin, start, at)]
    last = made[end - 1].nodes[-1].end - 1
    if len({script.tree.branch(place) for place in (*places, last)}) > 1 or script.tree.has_block(places[2], last):
        return "blocks of Jinja are in between"
    nodes = [node for entry in made[at + 1 : end] for node in entry.nodes]
    aliases = _aliases(made[begin + 1 : start])
    named = _names(nodes) & aliases.keys()
    # An alias of an expression is replaced by it; one of a window function cannot be inside of another.
    inside = not any(windowed for name, (_, windowed) in aliases.items() if name in named)
    with script.replacing({name: text for name, (text, _) in aliases.items()} if inside else {}):
        condition = write(script, nodes)
    _rewrite(made, (begin, start, at, end), condition, inside=inside, upper=made[begin].text.isupper())
    return ""


def _rewrite(
    made: list[Written], places: tuple[int, int, int, int], condition: str, *, inside: bool, upper: bool
) -> None:
    """Change the entries from SELECT to the end of the condition.

    A condition on columns of the result only is a filter of the outer SELECT, or a column of one in between if it has
    a window function; else it is a column of the SELECT itself.
    """
    begin, start, at, end = places
    has_window = _has_window(made[at + 1 : end])

    def cased(text: str) -> str:
        return (text.upper() if upper else text).replace("#", _COLUMN)

    # A comment at the end of the condition must not take in what follows.
    flag = condition + ("\n" if "--" in condition else "")
    if not has_window:
        head, tail = cased("select * from ("), cased(") where ") + flag
    elif inside:
        head, tail = cased("select * except (#) from ("), cased(") where #")
        added = f", {flag}{cased(' as #')}"
        if "{%" in made[start].gap:
            made[start].text = f"{added} {made[start].text}"
        else:
            made[start - 1].text += added
    else:
        head = cased("select * except (#) from (select *, ") + flag + cased(" as # from (")
        tail = cased(")) where #")
    made[begin].text = head + made[begin].text
    made[at:end] = [Written(made[at].gap, tail, [*made[at].nodes, *made[end - 1].nodes], "other")]


def _last(words: Sequence[str], word: str, before: int) -> int:
    return next((at for at in range(before - 1, -1, -1) if words[at] == word), -1)


def _aliases(items: Sequence[Written]) -> dict[str, tuple[str, bool]]:
    """Return by alias the text of each column and whether it has a window function; kept names are left out."""
    found: dict[str, tuple[str, bool]] = {}
    first = 0
    for at, item in enumerate(items):
        if item.word == ",":
            first = at + 1
        elif at > first + 1 and items[at - 1].word == "as" and item.kind == "operand":
            value = items[first : at - 1]
            name = item.text.strip("`").lower()
            if value[-1].text.strip("`").lower() != name:
                text = "".join(entry.gap + entry.text for entry in value).strip()
                single = len(value) == 1 or all(entry.kind in ("operand", "dot") for entry in value)
                found[name] = (text if single else f"({text})", _has_window(value))
    return found


def _names(nodes: Sequence[Node]) -> set[str]:
    found: set[str] = set()
    for at, node in enumerate(nodes):
        if node.kind == "brackets":
            found |= _names(node.inside)
        elif node.kind in ("word", "name") and not (at and nodes[at - 1].word == "."):
            found.add(node.text.strip('`"').lower())
    return found


def _has_window(entries: Sequence[Written]) -> bool:
    return any(_is_window(node) for entry in entries for node in entry.nodes)


def _is_window(node: Node) -> bool:
    return node.word == "over" or any(_is_window(inner) for inner in node.inside)
