"""A name of each kind is renamed in three projects; `python -m tests.lsp.every_name` renames all."""

import pytest

from tests.lsp.every_name import PROJECTS, REASONS, check, names_of, opened_project


@pytest.mark.parametrize("project", PROJECTS)
def test_only_the_name_differs(project, tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    PROJECTS[project](root)
    opened = opened_project(root)
    kinds = {name.kind: name for name in names_of(opened)}
    some = kinds.values() if project == "shop" else list(kinds.values())[:4]
    for name in some:
        reason = check(opened, name)
        assert not reason or any(words in reason for words in REASONS), (name, reason)
