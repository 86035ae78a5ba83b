"""The prompt of `engine sql`: lines with history and completion, by the readline of the standard library."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.console.safe_output import write
from engine.user_cache import is_own

if TYPE_CHECKING:
    from engine.cli.sql.lake_queries import LakeQueries

_FIRST, _NEXT = "sql> ", "  -> "
_MOST_LINES = 1000
_MOST_BYTES = 1_000_000
# What ends a word that is completed; not the dot of `schema.table` and `table.column`.
_ENDS = " \t\n\"'`,;()=<>+-*/|{}"
_WORD = re.compile(r"[\w.]+")


@contextmanager
def prompt(lake_queries: LakeQueries, history: Path | None) -> Iterator[Iterable[str | None]]:
    """Give the lines that are typed until Ctrl-D; None: those of this statement are discarded (Ctrl-C).

    Args:
        reading: whose tables and columns are completed.
        history: the file that keeps lines from one prompt to the next; None: nothing is kept.
    """
    try:
        import readline
    except ImportError:
        # Python can be built without it: then lines are plain.
        yield _lines(_TypedLines())
        return
    typed = _TypedLines()
    readline.set_completer_delims(_ENDS)
    readline.set_completer(_completer(lake_queries, typed))
    readline.parse_and_bind("tab: complete")
    readline.clear_history()
    for line in _read_history(history):
        readline.add_history(line)
    try:
        yield _lines(typed)
    finally:
        readline.set_completer(None)
        count = readline.get_current_history_length()
        _write_history(
            history, [readline.get_history_item(i) for i in range(max(1, count - _MOST_LINES + 1), count + 1)]
        )


class _TypedLines:
    def __init__(self) -> None:
        self.lines: list[str] = []


def _lines(typed: _TypedLines) -> Iterator[str | None]:
    while True:
        try:
            line = input(_NEXT if typed.lines else _FIRST)
        except EOFError:
            write()  # the line of the prompt is left
            return
        except KeyboardInterrupt:
            # What was typed is discarded, as in a shell.
            write()
            typed.lines = []
            yield None
            continue
        typed.lines.append(line)
        if line.rstrip().endswith(";") or typed.lines[0].lstrip().startswith("\\"):
            typed.lines = []
        yield line


def candidates(lake_queries: LakeQueries, text: str, word: str) -> list[str]:
    mentioned_tables = [name for name in lake_queries.tables if name in _WORD.findall(text)]
    table, dot, _ = word.rpartition(".")
    aliased = (
        [f"{table}{dot}{column.name}" for name in mentioned_tables for column in lake_queries.columns(name)]
        if dot
        else []
    )
    columns = [column.name for name in mentioned_tables for column in lake_queries.columns(name)]
    completions = [*lake_queries.tables, *columns, *aliased]
    return sorted({name for name in completions if name.startswith(word)})


def _completer(lake_queries: LakeQueries, typed: _TypedLines) -> Callable[[str, int], str | None]:
    import readline

    def complete(word: str, state: int) -> str | None:
        # An error in a completer is swallowed by readline; a catalog that does not answer completes nothing.
        with suppress(Exception):
            before = "\n".join([*typed.lines, readline.get_line_buffer()])
            return next(islice(candidates(lake_queries, before, word), state, None), None)
        return None

    return complete


def _read_history(file: Path | None) -> list[str]:
    """The lines of earlier prompts, if nobody but the user can have written them."""
    if file is None or not is_own(file, private=True):
        return []
    with suppress(OSError):
        return file.read_bytes()[-_MOST_BYTES:].decode("utf-8", "replace").splitlines()[-_MOST_LINES:]
    return []


def _write_history(file: Path | None, lines: Iterable[str | None]) -> None:
    """Write the lines for the next prompt, readable by their owner alone; a history that cannot be kept is not."""
    if file is None:
        return
    new = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        with open(new, "x", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600)) as stream:
            stream.writelines(f"{line}\n" for line in lines if line)
        new.replace(file)
