r"""Characters that are not what they seem: they steer a terminal, turn the direction of text, or cannot be seen.

A text of a project, of a table or of another program is shown with these characters written out (`\x1b`, `\u202e`),
so that what a reader sees is what there is.
"""

from __future__ import annotations

import re

# Marks, embeddings, overrides and isolates of the bidirectional algorithm.
_BIDI = "\u202a-\u202e\u2066-\u2069"
# Default_Ignorable_Code_Point of Unicode (DerivedCoreProperties.txt), for a class of a regular expression.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ANNOTATIONS = "\ufff9-\ufffb"
# Controls of both sets (C0 and C1), the line ends that only Unicode knows, and halves of surrogate pairs.
_UNSEEN = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}{IGNORABLE}{_ANNOTATIONS}]")
_LINE_ENDS = re.compile("\n")
_WHOLE = re.compile("[0-9]{1,18}")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# `::name ...` at the start of a line, and `##[name` or `##vso[name` anywhere in it, are commands to the program that
# runs a CI job and reads its output.
_COMMAND_START = re.compile(r"(^[^\S\n]*):(?=:)", re.MULTILINE)
_COMMAND_MARK = re.compile(r"#(?=#[\w-]*\[)")


def visible(text: str) -> str:
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return _UNSEEN.sub(_escaped, text)


def one_line(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return _LINE_ENDS.sub(r"\\n", visible(text))


def without_commands(text: str) -> str:
    """Break up commands to a CI system, so that they are displayed and not executed."""
    if "::" in text:
        text = _COMMAND_START.sub(r"\1\\x3a", text)
    return _COMMAND_MARK.sub(r"\\x23", text) if "##" in text else text


def whole_number(text: str) -> int | None:
    """Parse a number of at most 18 digits that somebody else wrote; None if it is none.

    `isdigit` is true of `²`, which int() rejects, and int() of more than 4,300 digits is an error.
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    number = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character <= "\xff":
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if character <= "\uffff" else f"\\U{number:08x}"
