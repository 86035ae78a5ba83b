r"""How a path of this machine is written for each program that takes it as text, and read from what they print.

    form        for                                                           /a b          /a%b          /a*b
    hadoop      checkpoints, Parquet: nothing is decoded                      file:/a b     file:/a%b     file:/a*b
    pattern     sources of files: Hadoop takes some letters for patterns      file:/a b     file:/a%b     file:/a\*b
    iceberg     warehouses and what tables record: nothing is decoded         file:///a b   file:///a%b   file:///a*b
    encoded     Java's URI: Spark's notes of files, log4j, lists of jars      file:///a%20b file:///a%25b file:///a%2Ab
    sqlite      SQLite decodes it, in Python and in Java                      as encoded, with options behind a `?`

A program that gets another form than it expects writes beside the project: an encoded path that nobody decodes is the
folder `a%20b`. No single form works for all; 51 letters and words were tried with each program (Spark 4.1.4, Hadoop
3.4.2, Iceberg 1.12.0, SQLite 3.50.3), and `python -m tests.odd_folders` runs all commands in folders with such names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from engine.errors import SetupError

# With an authority (file://host/x) a location is on no machine that Hadoop's local file system knows.
_LOCAL: Final = re.compile(r"file:(?:///+|/(?!/))")
_PATTERN: Final = re.compile(r"[\[\]{}*?\\]")
# An option of Spark's readers of files that are not streams: a path is taken as it is. Without it a colon is an error
# where a letter of a pattern is in the path, even behind a backslash.
AS_IT_IS: Final = {"__globPaths__": "false"}
_WILDCARD: Final = re.compile(r"[\[{*?]")
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_TOKENS: Final = re.compile(r"\\.|\[\[?[^]\[]*\]|.", re.DOTALL)
# Python's letters for the bytes of a name that is not UTF-8.
_NO_TEXT: Final = re.compile("[\ud800-\udfff]")


def hadoop(path: Path | str) -> str:
    return f"file:{path}"


def iceberg(path: Path | str) -> str:
    """Return an absolute path as an Iceberg location: Hadoop's, with the slashes that tables record."""
    return f"file://{path}"


def literally(location: str) -> str:
    """Escape a Hadoop location for Spark's readers, so that nothing in it is a pattern."""
    return _PATTERN.sub(r"\\\g<0>", location)


def pattern_letter(text: str) -> str:
    """Return the last letter by which Hadoop takes a path for a pattern; empty: there is none."""
    match: list[str] = _PATTERN.findall(text)
    return match[-1] if match else ""


def has_wildcard(part: str) -> bool:
    return bool(_WILDCARD.search(_ESCAPED.sub("", part)))


def names_of_pattern(part: str) -> re.Pattern[str]:
    """Return an expression for names that match one part of a Hadoop pattern; a class matches any letter."""
    match, depth = [], 0
    for piece in _TOKENS.findall(part):
        if piece == "{":
            match.append("(?:")
            depth += 1
        elif depth and piece in ",}":
            match.append("|" if piece == "," else ")")
            depth -= piece == "}"
        else:
            match.append({"*": ".*", "?": "."}.get(piece) or ("." if piece[0] == "[" else re.escape(piece[-1])))
    return re.compile("".join(match) + ")" * depth, re.DOTALL)


def encoded(path: Path | str) -> str:
    return f"file://{encoded_path(path)}"


def encoded_path(path: Path | str) -> str:
    """Return the folder that a program uses if it is given an encoded path and decodes nothing."""
    return quote(os.fsencode(path))


def sqlite(path: Path, options: str) -> str:
    """Return an absolute path as the address of a SQLite file; Java wants `jdbc:sqlite:` before it."""
    return f"{encoded(path)}?{options}"


def class_path(paths: Iterable[Path]) -> str:
    """Return Java's class path of files, which has no escapes; raise SetupError `java-start` for a colon in a path."""
    parts = [str(path) for path in paths]
    if wrong := next((part for part in parts if os.pathsep in part), ""):
        message = f"{wrong} has a colon in its path, and Java takes that for the end of an entry of its class path"
        hint = "Install Headrace in another folder, or set ENGINE_JARS to one for the jars."
        raise SetupError("java-start", message, hint)
    return os.pathsep.join(parts)


def path_of_location(location: str) -> str | None:
    """Return the path of a location of Hadoop or Iceberg, where nothing is encoded; None: it is elsewhere."""
    match = _LOCAL.match(location)
    return f"/{location[match.end() :]}" if match else None


def decoded(uri: str) -> str:
    """Return a Java URI, of any file system, as the location that Hadoop prints."""
    return _LOCAL.sub("file:/", unquote(uri), count=1)


def name_fault(path: Path | str) -> str:
    """Return why Java cannot open a file because of its name, in a few words; empty: it can."""
    try:
        # Where the locale is `C`, each byte beyond ASCII is such a letter, also those of UTF-8.
        os.fsencode(path).decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        return f"has the byte 0x{byte:02X} in its name, which is not UTF-8, and Java cannot open it"
    except UnicodeEncodeError:
        match = _NO_TEXT.search(str(path))
        letter = match[0] if match else ""
        return f"has the letter {letter!a} in its name, which is not UTF-8, and Java cannot open it"
    return ""
