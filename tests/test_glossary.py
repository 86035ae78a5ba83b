"""Docs and messages use the standard terms of dbt, Spark, Kafka and Iceberg."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine

ENGINE = Path(engine.__file__).parent
ROOT = ENGINE.parent
# What is not written, and what is written instead.
EVERYWHERE = {
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
    r"\bhandbook\b": "documentation",
    r"\bembedded lake\b": "local warehouse",
    r"\bways on\b|\bthe way on\b": "how to fix",
    r"\bwithout (a )?partner\b": "unmatched",
    r"\bof one's own\b": "custom",
    r"\bmust be said\b": "required",
}
IN_DOCS = {
    r"\bas a whole\b": "in full",
    r"\banew\b": "rebuilt, again",
    r"\bgo(es)? on\b": "resumes, continues",
    r"\bstands?\b(?!ard|alone)": "is; existing",
    r"\bmistakes?\b|\bmends?\b": "error, fix",
    r"\bremed(y|ies)\b": "how to fix",
    r"\bsettle[sd]?\b": "pins, resolves",
    r"\brefuse[sd]?\b(?<!kafka-refused)": "rejected",
    r"\bis told\b|\btells\b": "reports, shows",
    r"\bwhat decides on\b": "row-level lineage",
    r"\b(?:rows|all) that wait\b": "staged rows; unread data",
}
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "examples").rglob("*.md"), ROOT / "README.md"])


def found(text: str, words: dict[str, str]) -> Iterator[str]:
    for pattern, instead in words.items():
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"line {line}: '{match[0]}': write: {instead}"


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages(page: Path) -> None:
    assert list(found(page.read_text(encoding="utf-8"), {**EVERYWHERE, **IN_DOCS})) == []


def test_messages() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sorted(ENGINE.rglob("*.py"))
        for line, text in messages(path)
        for what in found(text, EVERYWHERE)
    ]
    assert wrong == []


def test_texts_of_the_site() -> None:
    pages = [
        p for p in sorted((ENGINE / "docs").rglob("*")) if p.suffix in {".js", ".html"} and "vendor" not in p.parts
    ]
    wrong = [
        f"{page.relative_to(ROOT)} {what}"
        for page in pages
        for what in found(page.read_text(encoding="utf-8"), EVERYWHERE)
    ]
    assert wrong == []


def test_the_words_are_seen() -> None:
    text = "State grows for ever.\nIt is read as a whole, every time, and goes on."
    assert [line.partition(":")[0] for line in found(text, {**EVERYWHERE, **IN_DOCS})] == ["line 1", "line 2", "line 2"]
