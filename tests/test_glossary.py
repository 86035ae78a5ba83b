"""Docs and messages use the standard terms of dbt, Spark, Kafka and Iceberg."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_layers import ROOT as ENGINE
from tests.test_layers import modules_with

pytestmark = pytest.mark.slow

ROOT = ENGINE.parent
# What is not written, and what is written instead.
WORDS = {
    r"\bfor ever(?!y)": "without bound, indefinitely",
    r"\b(said|stands?) twice\b": "set twice",
    r"\bput (aside|away)\b": "quarantined; archived or deleted",
    r"\bpass(es|ed)? over\b(?! (?:all|the) )": "skipped, ignored",
    r"\bmade again\b": "recreated",
    r"\b(given|gives?) up\b": "discarded, released",
    r"\b(lost|joined) files\b": "orphan files, compacted files",
    r"\blooks? after\b|\bupkeep\b": "maintains, table maintenance",
    r"\bif it goes\b": "impact",
    r"\bdbt's (way|habits)\b": "dbt syntax, dbt compatibility",
    r"\bhandbook\b(?!_)": "documentation",
    # Rows of a source that cannot be re-read can be lost, so nothing is promised.
    r"(?i)\bat.least.once\b": "exactly once; no guarantee",
    r"\bembedded lake\b": "local warehouse",
    r"\bways on\b|\bthe way on\b": "how to fix",
    r"\bwithout (a )?partner\b": "unmatched",
    r"\bof one's own\b": "custom",
    r"\bmust be said\b": "required",
    r"\bread as a whole\b": "read in full",
    r"\banew\b": "rebuilt, again",
    r"\bgo(es)? on\b": "resumes, continues",
    r"\bstands?\b(?! for\b|:)": "is; existing",
    r"\bmistakes?\b|\bmends?\b": "error, fix",
    r"\bremed(y|ies)\b": "how to fix",
    r"\bsettle[sd]?\b(?!:)": "pins, resolves",
    r"\brefuse[sd]?\b(?!:)": "rejected",
    r"\bis told\b|\btells\b": "reports, shows",
    r"\bwhat decides on\b": "row-level lineage",
    r"\b(?:rows|all) that wait\b": "staged rows; unread data",
    r"(?<![Tt]here )\b(?:is|are) no (?!longer|more|such)[a-z]": "is not a",
}
# What a user reads: here no word of its own for what SQL and YAML call otherwise.
FOR_USERS = {
    r"\bas a whole\b(?! number)": "in full",
    r"\b[Tt]ake (it|them) out\b": "remove",
    r"\b[Ss]aid\b|\b[Tt]old\b(?!\.json)": "set; reported",
}
PAGES = sorted(
    [
        *(ROOT / "docs").glob("*.md"),
        *(path for name in ("design", "examples", "errors", "how-to") for path in (ROOT / "docs" / name).rglob("*.md")),
        ROOT / "README.md",
    ]
)


def wrong_words(text: str, words: dict[str, str]) -> Iterator[str]:
    for pattern, instead in words.items():
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"line {line}: '{match[0]}': write: {instead}"


def texts(source: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """The messages of a module, and its docstrings and comments, with their lines."""
    tree = ast.parse(source)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    messages = [(n.lineno, n.value) for n in strings if id(n) not in docstrings]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]
    return messages, [(n.lineno, n.value) for n in strings if id(n) in docstrings] + comments


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages(page: Path) -> None:
    assert list(wrong_words(page.read_text(encoding="utf-8"), WORDS)) == []


def test_the_engine() -> None:
    wrong = []
    some = "|".join(f"(?:{word.replace('(?i)', '')})" for word in {**WORDS, **FOR_USERS})
    for path, source in modules_with(f"(?i:{some})"):
        messages, descriptions = texts(source)
        for found, words in ((messages, {**WORDS, **FOR_USERS}), (descriptions, WORDS)):
            for line, text in found:
                wrong += [f"{path.relative_to(ROOT)}:{line}: {what}" for what in wrong_words(text, words)]
    assert wrong == []


def test_texts_of_the_site() -> None:
    pages = [
        p for p in sorted((ENGINE / "docs").rglob("*")) if p.suffix in {".js", ".html"} and "vendor" not in p.parts
    ]
    wrong = [
        f"{page.relative_to(ROOT)} {what}"
        for page in pages
        for what in wrong_words(page.read_text(encoding="utf-8"), WORDS)
    ]
    assert wrong == []


def test_the_words_are_seen() -> None:
    text = "State grows for ever.\nIt is read as a whole, every time, and goes on."
    assert [line.partition(":")[0] for line in wrong_words(text, WORDS)] == ["line 1", "line 2", "line 2"]
