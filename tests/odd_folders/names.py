"""Random names of folders and files, as a file system allows them and programs mistake them for something else."""

from __future__ import annotations

import random
from pathlib import Path

# One at least is in each name: what programs take for options, escapes, patterns, lists or the end of a name.
LETTERS = (
    *" +#?%[]{}&=,;:@'$\"\\*^|<>`~!()",
    "é", "ü", "e\u0301", "ß", "日本", "😀", "\u0627", "\u00a0", "\u2028", "\u202e", "\u200b", "\ufeff", "\t", "\n", "\r", "\x01", "\x7f", "\x85",
)  # fmt: skip
# What is there for a reason: the encoded forms of others, and what shells, SQL and Java replace.
WORDS = ("%20", "%2F", "%41", "%p", "%zz", "${x}", "$HOME", "..", ".x", "~", "--", "a=b", "dt=1", "[a]", "{a,b}", "\\x")
PATTERN = "[]{}*?\\"
_PLAIN = "abcxyz019-_"


def odd_name(dice: random.Random, *, without: str = "") -> str:
    """Return a random name.

    Args:
        dice: that decides.
        without: letters that are not in it.
    """
    while True:
        parts = [dice.choice(LETTERS)]
        for _ in range(dice.randrange(6)):
            kind = dice.randrange(8)
            if kind < 3:
                parts.append(dice.choice(LETTERS))
            elif kind < 4:
                parts.append(dice.choice(WORDS))
            elif kind < 5:
                parts.append(_any_letter(dice))
            else:
                parts.append("".join(dice.choices(_PLAIN, k=dice.randint(1, 4))))
        dice.shuffle(parts)
        name = "".join(parts)
        if name not in {".", ".."} and not set(without) & set(name) and len(name.encode()) <= 120:
            return name


def folder_name(dice: random.Random) -> str:
    """Return a random name of a folder from which Spark reads: a colon and a letter of a pattern are an error together."""
    return odd_name(dice, without=dice.choice((":", PATTERN)))


def _any_letter(dice: random.Random) -> str:
    """A letter of any plane of Unicode; half of a surrogate pair is none."""
    while True:
        number = dice.randrange(1, dice.choice((0x250, 0x3000, 0x10000, 0x110000)))
        if not 0xD800 <= number < 0xE000 and number != ord("/"):
            return chr(number)


def strays(outer: Path, names: tuple[str, ...]) -> list[str]:
    """Return what is in a folder beside the one way down that leads to a project."""
    found, folder = list[str](), outer
    for name in names:
        found += [str(path) for path in folder.iterdir() if path.name != name]
        folder /= name
    return found
