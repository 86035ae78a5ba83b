"""Texts for users have none of the habits that docs/contributing/writing.md names and a pattern can find.

These are the pages, the explanations of errors, the help of commands, the descriptions of keys, and the messages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

from engine.cli.main import cli
from engine.diagnostics.explanations import FOLDER
from engine.schema.all_blocks import FILES_OF_A_PROJECT
from tests.test_layers import modules

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_CODE = re.compile(r"^(?P<fence>```+).*?^(?P=fence)|^(?: {4}|\t).*?$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(`+).+?\1|\]\([^)]*\)", re.DOTALL)
HABITS = {
    # A question may have it.
    "a clause with 'what' as a noun: name the thing": r"\bwhat\b(?![^.?!:;|]*\?)",
    "'that of', 'those of': repeat the noun, or use a possessive": r"\b(?:that|those) of\b",
    "'one X a Y': write 'one X per Y'": r"\bone (?!is\b|at\b|and\b|or\b|takes\b|has\b)[a-z]+ an? [a-z]+",
    "'says', 'told': reports, shows, prints": r"\b(?:says|said|tells|told)\b",
    "'beside': next to, in addition to, alongside": r"\bbeside\b",
    "'the engine': Headrace": r"\bthe engine\b",
    "'again' for re-read, recompute, rebuild, recreate": r"\b(?:read|computed|compiled|built|made|written) (?:\w+ )?again\b",
    "'turn' for a run": r"\b(?:a|its|the|each|every|next|last|of) turns?\b",
    "'as a whole': in full, completely": r"\bas a whole\b(?! number)",
    "'goes on', 'anew': resumes, from scratch": r"\b(?:go|goes|went) on\b|\banew\b",
    "'looks after', 'given back', 'put aside': maintains, releases, quarantines": r"\blooks? after\b|\bgiven back\b|\bput aside\b",
    "'of before', 'of then', 'of now': previous, current": r"\bof (?:before|then|now)\b",
}
# Written by `make reference docs`, by tests and from results, with texts of the code.
GENERATED = ("reference/", "edits.md", "benchmarks.md")
# Pages that still have such habits, with their number. It may only shrink: a page without any leaves the list.
TO_DO: dict[str, int] = {}
# Messages that still have such habits, by module, in the same way.
MESSAGES_TO_DO: dict[str, int] = {}
LENGTH = 2000
# These may be longer: a list of every command, and pages made from code.
LONGER = ("commands.md", *GENERATED)


def pages() -> list[Path]:
    """Every page for users that is written by hand."""
    written = [
        page for page in sorted(DOCS.rglob("*.md")) if not page.relative_to(DOCS).as_posix().startswith(GENERATED)
    ]
    named = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "benchmarks/README.md")
    return [*(ROOT / name for name in named), *written]


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def habits(text: str) -> Iterator[str]:
    """Yield each habit in the prose of a page with its line."""
    prose = _INLINE.sub(_blank, _CODE.sub(_blank, text))
    for habit, pattern in HABITS.items():
        # A sentence goes over the end of a line.
        for match in re.finditer(pattern.replace(" ", r"\s+"), prose, re.IGNORECASE):
            yield f"line {prose.count(chr(10), 0, match.start()) + 1}: '{' '.join(match[0].split())}': {habit}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_no_habits(page: Path) -> None:
    found = list(habits(page.read_text(encoding="utf-8")))
    allowed = TO_DO.get(page.relative_to(ROOT).as_posix(), 0)
    assert len(found) <= allowed, "\n".join(found)


def test_the_pages_to_do_have_habits() -> None:
    counts = {name: len(list(habits((ROOT / name).read_text(encoding="utf-8")))) for name in TO_DO}
    assert [name for name, count in counts.items() if count == 0] == [], "remove these from TO_DO"


def test_no_page_is_too_long() -> None:
    lengths = {
        page.relative_to(DOCS).as_posix(): len(_CODE.sub(_blank, page.read_text(encoding="utf-8")).split())
        for page in DOCS.rglob("*.md")
    }
    assert {name: n for name, n in lengths.items() if n > LENGTH and not name.startswith(LONGER)} == {}


def test_habits_are_seen() -> None:
    text = "It shows what is\nleft, and that of a table. What is it?\n\n    what is code\n\n`what` is, too.\nOne lease a table."
    assert [line.partition(":")[0] for line in habits(text)] == ["line 1", "line 2", "line 7"]


def sentences(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of several words in a module with their lines, other than docstrings; values are an X."""
    tree = ast.parse(source)
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    composed = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in composed for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described | parts:
            text = node.value
        else:
            continue
        if " " in text:
            yield node.lineno, text


def found_in(texts: Mapping[str, str]) -> list[str]:
    return [f"{name}: {habit}" for name, text in texts.items() for habit in habits(text)]


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yield the help of a command, of its options and of the commands below it."""
    yield name, command.help or ""
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            yield f"{name} {option.opts[0]}", option.help or ""
    for below, one in getattr(command, "commands", {}).items():
        yield from helps(one, f"{name} {below}")


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.stem)
def test_an_explanation_of_errors_has_no_habits(page: Path) -> None:
    assert list(habits(page.read_text(encoding="utf-8"))) == []


def test_the_help_of_commands_has_no_habits() -> None:
    assert found_in(dict(helps(cli, "engine"))) == []


def test_the_help_of_a_command_is_one_line_that_begins_with_a_capital_and_ends_with_a_stop() -> None:
    lines = {name: text.partition("\n")[0] for name, text in helps(cli, "engine") if " -" not in name}
    assert [f"{name}: {line}" for name, line in lines.items() if not re.fullmatch(r"[A-Z].{10,}\.", line)] == []


def test_descriptions_of_keys_have_no_habits() -> None:
    texts = {}
    for block in (block for file in FILES_OF_A_PROJECT for block in file.blocks):
        texts[block.title] = block.text
        for key in block.keys:
            texts[f"{block.title} {key.name}"] = f"{key.meaning}. Default: {key.default}."
    assert found_in(texts) == []


def test_messages_have_no_habits() -> None:
    found = {}
    for path in modules():
        name = path.relative_to(ROOT).as_posix()
        texts = {f"{name}:{line}": text for line, text in sentences(path.read_text(encoding="utf-8"))}
        if (wrong := found_in(texts)) and len(wrong) > MESSAGES_TO_DO.get(name, 0):
            found[name] = wrong
    assert found == {}


def test_sentences_of_a_module_are_seen() -> None:
    source = 'def f(x):\n    """What it does."""\n    return f"what {x} reads", "word", ("the " "engine")\n'
    assert list(sentences(source)) == [(3, "what X reads"), (3, "the engine")]
