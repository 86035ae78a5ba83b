"""Text that a reviewer sees as something else than what it says ("Trojan Source", CVE-2021-42574 and CVE-2021-42694).

Controls of the bidirectional algorithm change the order in which a line is shown, characters without width are not
shown at all, and letters of other scripts look like Latin ones. Text in one script, also beside Latin words, is fine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.errors import Diagnostic, Level
from engine.project.model_header import location_of

# Embeddings, overrides and isolates; zero-width space, word joiner and byte order mark. The joiners U+200C and U+200D
# are not among them: Persian and many emojis are written with them.
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff]")
# Cyrillic, Greek and Armenian letters that look like a Latin one in common typefaces (Unicode, confusables.txt).
_LOOK_ALIKES = (
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u04ae"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u0578\u0585"
)
_WORD = re.compile(rf"\b\w*[{_LOOK_ALIKES}]\w*")
_LATIN = re.compile("[A-Za-z]")
_LOOK_ALIKE = re.compile(f"[{_LOOK_ALIKES}]")
_HIDDEN_HINT = "Delete it, and read the line again without it."


def deceptions(text: str, file: str, node: str | None = None) -> Iterator[Diagnostic]:
    """Warnings about what is not what it seems in a file, one of each kind, at the first place.

    Args:
        text: of the file, with plain line ends.
        file: its name as shown to users.
        node: name of the model.
    """
    if text.isascii():
        return
    hidden = list(_HIDDEN.finditer(text))
    if hidden:
        message = f"the character U+{ord(hidden[0][0]):04X} is invisible, or changes how the line is displayed"
        yield _warning(_with_count(message, len(hidden)), _HIDDEN_HINT, text, hidden[0].start(), file, node)
    mixed = [word for word in _WORD.finditer(text) if _LATIN.search(word[0])]
    if mixed:
        letter = _LOOK_ALIKE.search(text, mixed[0].start())
        offset = letter.start() if letter else mixed[0].start()
        message = (
            f"the word '{mixed[0][0][:40]}' mixes Latin letters with U+{ord(text[offset]):04X}, which looks like a "
            "Latin letter"
        )
        hint = "Type the word again in one alphabet."
        yield _warning(_with_count(message, len(mixed)), hint, text, offset, file, node)


def _with_count(message: str, number: int) -> str:
    return f"{message} ({number} of them in this file)" if number > 1 else message


def _warning(message: str, hint: str, text: str, offset: int, file: str, node: str | None) -> Diagnostic:
    return Diagnostic("trojan-source", message, hint, Level.WARNING, node, location_of(text, offset, file))
