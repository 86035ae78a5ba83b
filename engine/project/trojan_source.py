"""Text that a reviewer sees as something else than what it says ("Trojan Source", CVE-2021-42574 and CVE-2021-42694).

Controls of the bidirectional algorithm change the order in which a line is shown, characters without width are not
shown at all, and letters of other scripts look like Latin ones. Text in one script, also beside Latin words, is fine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from engine.characters import IGNORABLE
from engine.errors import Diagnostic, Level
from engine.project.model_header import location_of

# Embeddings, overrides and isolates, and what Unicode lets programs ignore when they show a text. The marks U+200E,
# U+200F and U+061C alone belong to lines of Hebrew and Arabic.
_HIDDEN = re.compile(f"[\u202a-\u202e\u2066-\u2069{IGNORABLE}]")
_MARKS = "\u200e\u200f\u061c"
# Joiners and variation selectors, which emojis and some scripts are written with.
_SHAPING = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180f]")
# Cyrillic, Greek and Armenian letters that look like a Latin one in common typefaces (Unicode, confusables.txt), and
# the Latin ones.
_TWINS = dict(zip(
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u04ae"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u0578\u0585",
    "ABEZHIKMNOPTYXov" "SIJABEKMHOPCTXY" "aeopcyxsijhdqwno", strict=True,
))  # fmt: skip
# Scripts whose letters are never in one word with Latin ones; Greek ones are, in formulas.
_SCRIPTS = ("CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
_FEMININE_AND_MASCULINE = "\u00aa\u00ba"
_WORD = re.compile(r"\w++")
_LATIN = re.compile("[A-Za-z]")
# Of SQL: comments, strings and, as the rest, words that are code.
_CODE = re.compile(
    r"--(?:\\\n|[^\n])*+|/\*(?:.*?\*/|.*+)|\{#(?:.*?#\}|.*+)"
    r"|'(?:[^'\\\n]++|\\.)*'|\"(?:[^\"\\\n]++|\\.)*\"|(?P<word>\w++)",
    re.DOTALL,
)
_CODE_FILES = (".sql", ".jinja")
_HIDDEN_HINT = "Delete it, and read the line again without it."


def deceptions(text: str, file: str, node: str | None = None) -> Iterator[Diagnostic]:
    """Yield a warning about each kind of deceptive character in a file, at the first place."""
    if text.isascii():
        return
    hidden = [match.start() for match in _HIDDEN.finditer(text) if not _shapes(text, match.start())]
    if hidden:
        message = f"the character U+{ord(text[hidden[0]]):04X} is invisible, or changes how the line is displayed"
        yield _warning(_with_count(message, len(hidden)), _HIDDEN_HINT, text, hidden[0], file, node)
    mixed = [mixed_word for word in _WORD.finditer(text) if (mixed_word := _mixed_script(word)) is not None]
    if mixed:
        word, offset = mixed[0]
        description = "which looks like a Latin letter" if _twin(text[offset]) else "a letter of another script"
        message = f"the word '{word[:40]}' mixes Latin letters with U+{ord(text[offset]):04X}, {description}"
        hint = "Type the word again in one alphabet."
        yield _warning(_with_count(message, len(mixed)), hint, text, offset, file, node)
    twins = list(_lookalike_names(text)) if file.endswith(_CODE_FILES) else []
    if twins:
        word, latin, offset = twins[0]
        message = f"the name '{word[:40]}' begins with U+{ord(word[0]):04X} and looks like '{latin[:40]}', another name"
        hint = "Type it again in Latin letters, or choose another name."
        yield _warning(_with_count(message, len(twins)), hint, text, offset, file, node)


def _shapes(text: str, offset: int) -> bool:
    """Whether an invisible character belongs to a symbol, or to a letter of a script that is written with it."""
    if text[offset] in _MARKS:
        return True
    if not _SHAPING.match(text[offset]):
        return False
    before = text[offset - 1] if offset else " "
    if unicodedata.category(before)[0] == "S" or _SHAPING.match(before) is not None:
        return before != "`" and not before.isascii()
    if text[offset] == "\ufe0f" and text[offset + 1 : offset + 2] == "\u20e3":
        return True
    return unicodedata.category(before)[0] in "LM" and _script(before) not in {"LATIN", "GREEK", "CYRILLIC"}


def _script(letter: str) -> str:
    """The script of a letter, as the first word of its name has it; Python has no other table of scripts."""
    return unicodedata.name(letter, "").partition(" ")[0]


def _twin(letter: str) -> str:
    """The Latin letter that a letter looks like; empty if there is none."""
    if letter.isascii() or letter in _FEMININE_AND_MASCULINE:
        return ""
    normalized = unicodedata.normalize("NFKC", letter)
    # Fullwidth, mathematical and the like; letters with accents are other letters.
    return _TWINS.get(letter) or (
        normalized if len(normalized) == 1 and _LATIN.match(normalized) and letter.isalpha() else ""
    )


def _mixed_script(word: re.Match[str]) -> tuple[str, int] | None:
    """A word of Latin letters and others, with the place of the first other one."""
    if word[0].isascii() or not _LATIN.search(word[0]):
        return None
    for place, letter in enumerate(word[0]):
        if _twin(letter) or (not letter.isascii() and _script(letter) in _SCRIPTS):
            return word[0], word.start() + place
    return None


def _lookalike_names(text: str) -> Iterator[tuple[str, str, int]]:
    """Names that look like a Latin one: of a single letter, or where that is a name in the file too."""
    words = [match for match in _CODE.finditer(text) if match["word"]]
    names = {match["word"].lower() for match in words if match["word"].isascii()}
    for match in words:
        latin = "".join(letter if not letter.isalpha() else _twin(letter) or " " for letter in match["word"])
        is_twin = " " not in latin and not match["word"].isascii() and not _LATIN.search(match["word"])
        if is_twin and (len(latin) == 1 or latin.lower() in names):
            yield match["word"], latin, match.start()


def _with_count(message: str, number: int) -> str:
    return f"{message} ({number} of them in this file)" if number > 1 else message


def _warning(message: str, hint: str, text: str, offset: int, file: str, node: str | None) -> Diagnostic:
    return Diagnostic("trojan-source", message, hint, Level.WARNING, node, location_of(text, offset, file))
