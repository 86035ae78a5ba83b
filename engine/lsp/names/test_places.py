"""Names of data tests and of their kinds, where they are listed: for a column, a model or a source."""

from __future__ import annotations

from collections.abc import Iterator

from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.opened.open_project import OpenProject
from engine.project.parse_yaml import Path

_LISTS = ("tests", "data_tests")
_KIND_AND_KEY = 2


def test_name(opened: OpenProject, file: str, text: str, path: Path, at: int, *, is_key: bool) -> Iterator[NamedPlace]:
    depth = next((index for index, part in enumerate(path) if part in _LISTS), None)
    if depth is None:
        return
    rest = path[depth + 1 :]
    at += int(text[at : at + 1] in {"'", '"'})
    word = _word(text, at)
    # `- unique: {..}` and `- unique`.
    if (is_key and len(rest) == _KIND_AND_KEY) or (
        not is_key and len(rest) == 1 and text[at : at + 1] not in {"{", ""}
    ):
        if any(macro.name == f"test_{word}" for macro in opened.manifest.macros):
            yield NamedPlace(file, at, len(word), Name(NameKind.TEST_KIND, word))
    elif not is_key and rest[-1:] == ("name",) and word:
        yield NamedPlace(file, at, len(word), Name(NameKind.TEST, word))


def _word(text: str, at: int) -> str:
    end = at
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[at:end]
