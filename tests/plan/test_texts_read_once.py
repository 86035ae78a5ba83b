"""`plan` reads each text of SQL once, however many questions it has about an edit."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from engine.compile import Manifest, Model, compile_project
from engine.compile.sql.lexer import tokens
from engine.compile.sql.lexer.lexemes import lexemes
from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from engine.plan.edits.affected_columns import affected_exposures, affected_models
from engine.plan.edits.changed_clauses import with_clauses
from engine.project import load_project
from tests.lab import REPOSITORY

pytestmark = pytest.mark.slow


def _compiled(root: Path) -> Manifest:
    return compile_project(load_project(root), env={}).manifest


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Manifest]:
    """The example, and the example with an edit of each model."""
    root = tmp_path_factory.mktemp("example")
    for name in ("models", "sources", "macros", "project.yml", "packages", "tests"):
        there = REPOSITORY / name
        if there.is_dir():
            shutil.copytree(there, root / name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        elif there.exists():
            shutil.copy(there, root / name)
    before = _compiled(root)
    for path in (root / "models").rglob("*.sql"):
        head, end, sql = path.read_text(encoding="utf-8").rpartition("---*/")
        path.write_text(head + end + sql.replace("select", "select 1 as edited,", 1), encoding="utf-8")
    return before, _compiled(root)


def _plan(before: Manifest, after: Manifest) -> Iterator[Change]:
    for node in after.order:
        model, old = after.nodes[node], before.nodes[node]
        if isinstance(model, Model) and isinstance(old, Model) and model.facts and not model.broken:
            yield compare_model(after, model, LastWriter(old.fingerprint, old.facts)).change
            affected_exposures(after, model, old.facts, affected_models(after, model, old.facts))
            with_clauses("the query changed", old.facts, model.facts)


def test_each_text_is_tokenized_once(edited: tuple[Manifest, Manifest]) -> None:
    tokens.tokens_of.cache_clear()
    read = Counter[str]()

    def counted(text: str) -> Iterator[object]:
        read[text] += 1
        return lexemes(text)

    with patch.object(tokens, "lexemes", counted):
        changes = list(_plan(*edited))
    assert sum(change is not Change.UNCHANGED for change in changes) > 8
    assert len(read) > 30
    assert {text: number for text, number in read.items() if number > 1} == {}
