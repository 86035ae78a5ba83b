"""Random texts of what lexers disagree about: quotes, escapes, comments, numbers, signs, blanks, letters beyond ASCII."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_Fragment = Callable[[random.Random], str]
_WORDS = (
    "select", "SELECT", "from", "where", "and", "or", "not", "as", "a", "b", "t", "id", "kind", "r", "R", "x", "X", "n", "N",
    "b", "array", "Map", "STRUCT", "group", "by", "order", "partition", "sort", "grouping", "sets", "date", "timestamp",
    "interval", "like", "escape", "null", "true", "case", "when", "end", "in", "between", "is", "all", "window", "first",
    "1a", "1_000", "0x1F", "0b1", "1e", "e5", "_", "_1", "12L3", "5e", "l", "bd", "E", "d", "f", "file", "format", "ref",
    "user", "similar", "to", "connect", "primary", "key", "double", "precision", "add", "jar", "execute", "show", "n1",
    "caf\u00e9", "\u00e9", "\u017felect", "l\u0131mit", "\u03b1", "\u4e2d", "a\u0301", "\u2167", "\u0661", "K\u212a",
    "\u1e9e", "na\u00efve1", "\ud7ff", "s3", "http", "file",
)  # fmt: skip
_SIGNS = (
    ";", "(", ")", ",", ".", "[", "]", "!", "=", "==", "<=>", "<>", "!=", "<", "<=", "!>", ">", ">=", "!<", "<<", ">>",
    ">>>", "+", "-", "*", "/", "~", "&", "|", "||", "|>", "^", ":", "::", "->", "=>", "?", "%", "->>", "#>", ":=", "&&", "??",
    "?::", "~~", "<->", "@", "#", "$", "\\", "{", "}", "{{", "{%", "$$", "..", "...", "://", "*/", "/*+", "=<", "=!", "<=>>",
    "< <", "> >", "- -", "/ *", "|  >", ": :", "<\n=", "array<array<int>>", "map<string,struct<a:int>>", "struct<>",
)  # fmt: skip
_BLANKS = (
    " ", " ", " ", " ", "", "", "", "\n", "\t", "\r\n", "\r", "  ", "\f", "\v", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f",
    "\u205f", "\u3000", "\u2029", "\u0085", "\u200b", "\ufeff", "\u180e", "\x1c",
)  # fmt: skip
_INSIDE = (
    "a", "b", "it", "s", " ", "'", "''", '"', '""', "`", "``", "\\", "\\\\", "\\'", '\\"', "\\n", "\\t", "\\0", "\\000", "\\101",
    "\\177", "\\200", "\\1", "\\18", "\\u0041", "\\u004", "\\uD83D\\uDE00", "\\uD83D", "\\uDE00", "\\U0001F600", "\\U0011FFFF",
    "\\UFFFFFFFF", "\\U0000D83D", "\\U0001", "\\Z", "\\b", "\\r", "\\f", "\\v", "\\a", "\\%", "\\_", "%", "_", "\\x41", "\\\n",
    "\n", "\r\n", "\r", "\u00e9", "\ufffd", "\U0001f600", "\\\U0001f600", "--", "/*", "*/", "/*+", "\\e", "\x00", "\\\r\n", "${x}",
    "\u2028", "C:\\data\\", "+", ";", "-", "/", "*",
)  # fmt: skip
_LINE_ENDS = ("\n", "\n", "\r\n", "\r", "\\\n", "\\\n", "\\\r\n", "\\\r", "\\ \n", "\\\\\n", "")


def _inside(chance: random.Random, most: int = 6) -> str:
    return "".join(chance.choice(_INSIDE) for _ in range(chance.randint(0, most)))


def _string(chance: random.Random) -> str:
    quote = chance.choice("'''\"\"")
    inside = _inside(chance)
    if chance.random() < 0.5:
        # One that ends where it should.
        inside = inside.replace(quote, chance.choice((quote * 2, f"\\{quote}", "q")))
        inside += "\\" * (inside.endswith("\\") and (len(inside) - len(inside.rstrip("\\"))) % 2)
    return f"{chance.choice(('', '', '', 'r', 'R', 'x', 'X', 'n', 'b'))}{quote}{inside}{quote}"


def _hexadecimal(chance: random.Random) -> str:
    digits = "".join(chance.choice("0123456789abcdefABCDEF") for _ in range(chance.randint(0, 5)))
    quote = chance.choice("'\"")
    return f"{chance.choice('xX')}{chance.choice(('', '', ' ', '/**/'))}{quote}{digits}{quote}"


def _adjacent(chance: random.Random) -> str:
    return chance.choice(("", " ", "\n", "/**/", "--\n")).join(_string(chance) for _ in range(chance.randint(2, 3)))


def _quoted_name(chance: random.Random) -> str:
    inside = _inside(chance, 4)
    return f"`{inside.replace('`', '``') if chance.random() < 0.7 else inside}`"


def _number(chance: random.Random) -> str:
    digits = chance.choice(("0", "1", "12", "007", "2147483648", "1", "9" * 20))
    point = chance.choice(("", "", ".", ".5", ".05", ".."))
    exponent = chance.choice(("", "", "", "e5", "E+3", "e-2", "e", "e+", "E5e5", "e1.5"))
    suffix = chance.choice(("", "", "", "L", "l", "S", "y", "D", "f", "BD", "bd", "bD", "B", "x", "_", "LL", "\u017f"))
    number = f"{digits if chance.random() < 0.85 else ''}{point}{exponent}{suffix}"
    return number + chance.choice(("", "", "", ".", ".a", "a", "-1", "+1"))


def _line_comment(chance: random.Random) -> str:
    return f"--{_inside(chance, 4)}{chance.choice(_LINE_ENDS)}"


def _comment(chance: random.Random) -> str:
    pieces = (
        "a",
        " ",
        "/*",
        "*/",
        "/*+",
        "+",
        "*",
        "/",
        "'",
        '"',
        "--",
        "\n",
        "/*/",
        "*/*",
        "/**/",
        "`",
        "\\",
        "\u00e9",
        "- ",
    )
    inside = "".join(chance.choice(pieces) for _ in range(chance.randint(0, 6)))
    missing = max(inside.count("/*") - inside.count("*/"), 0) if chance.random() < 0.6 else 0
    return f"/*{inside}{'*/' * missing}*/"


def _hint(chance: random.Random) -> str:
    return f"select /*+ {chance.choice(('broadcast(t)', 'a, b(1)', 'x(``y``)', ''))} {_comment(chance)} */"


def _noise(chance: random.Random) -> str:
    return "".join(chance.choice("'\"`\\/*+-rR \n\r1eE.xLa_:>|<=!\u00e9") for _ in range(chance.randint(1, 6)))


_FRAGMENTS: Sequence[tuple[_Fragment, int]] = (
    (lambda chance: chance.choice(_WORDS), 8),
    (lambda chance: chance.choice(_SIGNS), 5),
    (_string, 6),
    (_adjacent, 3),
    (_hexadecimal, 1),
    (_quoted_name, 2),
    (_number, 5),
    (_line_comment, 3),
    (_comment, 3),
    (_hint, 1),
    (_noise, 1),
)

# How many texts have only what Spark's lexer knows, and which fragments they have.
_LEGAL = 0.6
_ENDING: Sequence[_Fragment] = (
    lambda chance: chance.choice(_WORDS), lambda chance: chance.choice(_SIGNS), _string, _hexadecimal, _quoted_name, _number,
    lambda chance: f"--{''.join(chance.choice(_INSIDE) for _ in range(3))}".replace("\r", "").replace("\\", "b") + chance.choice(("\n", "\\\n", "\r\n")),
    lambda chance: f"/*{chance.choice(('', ' a ', '/* b */', '/*+ c', ' -- d', ' e '))}*/",
)  # fmt: skip
_ENDING_WEIGHTS = (6, 5, 6, 1, 2, 4, 2, 2)


def _legal(chance: random.Random) -> str:
    """A text of characters that Spark knows, and of literals that have an end."""
    parts: list[str] = []
    while len(parts) < chance.randint(2, 10):
        fragment = chance.choices(_ENDING, _ENDING_WEIGHTS)[0](chance)
        quote = fragment.lstrip("rRxXnNb")[:1]
        if quote in "'\"`" and quote:
            fragment = _ended(fragment, quote)
        elif not fragment.isascii() or set(fragment) & set("@#$\\{}"):
            continue
        parts += [fragment, chance.choice((" ", " ", "\n", "\t", "", "\r\n", "\u00a0", "\u3000"))]
    return "".join(parts)


def _ended(literal: str, quote: str) -> str:
    """A literal of which no quote inside is its end."""
    prefix, _, inside = literal.partition(quote)
    inside = inside.removesuffix(quote)
    if prefix in {"r", "R"}:
        return f"{prefix}{quote}{inside.replace(quote, '')}{quote}"
    if quote == "`":
        return f"`{inside.replace('`', '``')}`"
    escaped = inside.replace("\\" + quote, "\0").replace(quote * 2, "\1").replace(quote, "")
    escaped += "\\" * ((len(escaped) - len(escaped.rstrip("\\"))) % 2)
    return f"{prefix}{quote}{escaped.replace(chr(0), chr(92) + quote).replace(chr(1), quote * 2)}{quote}"


def text(seed: int, number: int) -> str:
    """The text of a number; the texts of a seed differ."""
    chance = random.Random(f"{seed} {number}")
    kinds, weights = zip(*_FRAGMENTS, strict=True)
    if chance.random() < _LEGAL:
        return _legal(chance)
    # Half of the texts are of few kinds, so that a whole one is often legal.
    few = chance.sample(range(len(kinds)), 3) if chance.random() < 0.5 else range(len(kinds))
    fragments = chance.choices([kinds[i] for i in few], [weights[i] for i in few], k=chance.randint(1, 8))
    return "".join(fragment(chance) + chance.choice(_BLANKS) for fragment in fragments)
