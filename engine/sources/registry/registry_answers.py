"""What a schema registry answers, checked before anything of it is used, followed or kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

_MOST_NAME: Final = 1000
_SHOWN: Final = 100
# Ids have four bytes in the wire format, versions four in the registries.
_IDS: Final = 1 << 32
_VERSIONS: Final = 1 << 31
# The subject and the version of a schema that another one refers to.
Reference = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """`references` has subject and version of each; `id` is None where the question was for an id."""

    schema: str
    kind: str
    references: tuple[Reference, ...]
    id: int | None


def answer(data: Any) -> Answer | None:
    """Read an answer with a schema; None if it is of another form."""
    if not isinstance(data, dict) or not isinstance(data.get("schema"), str):
        return None
    kind, references, number = data.get("schemaType") or "AVRO", data.get("references") or [], data.get("id")
    if not isinstance(kind, str) or not isinstance(references, list) or not all(map(_is_reference, references)):
        return None
    if number is not None and not _is_number(number, _IDS):
        return None
    found = tuple((reference["subject"], reference["version"]) for reference in references)
    return Answer(data["schema"], short(kind), found, number)


def _is_reference(data: Any) -> bool:
    return isinstance(data, dict) and is_subject(data.get("subject")) and _is_number(data.get("version"), _VERSIONS)


def _is_number(value: Any, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < bound


def versions(data: Any) -> list[int] | None:
    """Read the versions of a subject; None if the answer is of another form."""
    return data if isinstance(data, list) and all(_is_number(number, _VERSIONS) for number in data) else None


def is_subject(text: Any) -> bool:
    """Whether a text can be a subject. Quoted, it stays one part of a path; only dots cannot be quoted."""
    if not isinstance(text, str) or not 0 < len(text) <= _MOST_NAME or text in {".", ".."}:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in text)


def short(text: object) -> str:
    line = " ".join(str(text).split())
    return f"{line[:_SHOWN]}.." if len(line) > _SHOWN else line
