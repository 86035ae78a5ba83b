"""Formatting a model's file with a program of the user's; an edit that would change the query is not made."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from lsprotocol import types

from engine.lsp.opened.open_project import OpenProject
from engine.secrets.scrubber import without_secrets

# Editors that format on save wait for it.
_SECONDS = 10.0


def formatted(opened: OpenProject, file: str, command: Sequence[str]) -> list[types.TextEdit] | str:
    """Return the edit of a formatted file, none if it stays as it is; a text says why it is not formatted.

    Args:
        opened: the project.
        file: of a model; others are left alone.
        command: the program and its arguments: it reads the file on standard input and writes it to standard output.

    Raises EngineError: a template takes too much.
    """
    if opened.model_of(file) is None:
        return []
    text = opened.text(file)
    new = _run_formatter(opened, text, command)
    if isinstance(new, list):
        return f"{command[0]} failed: {new[0]}"
    if new != text and (reason := _reason_against(opened, file, text, new)):
        return reason
    lines = text.split("\n")
    end = types.Position(len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2)
    return [types.TextEdit(types.Range(types.Position(0, 0), end), new)] if new != text else []


def _reason_against(opened: OpenProject, file: str, text: str, new: str) -> str:
    """Why a text is not taken for another one; empty: it is the same model."""
    before, after = (opened.compile_text(file, one) for one in (text, new))
    if before is None or after is None:
        return "the project could not be compiled"
    if any(problem.is_error for problem in before.problems):
        return "the model has errors"
    same = before.model.fingerprint == after.model.fingerprint
    broken = any(problem.is_error for problem in after.problems)
    return "" if same and not broken else "the answer is another query, or none"


def _run_formatter(opened: OpenProject, text: str, command: Sequence[str]) -> str | list[str]:
    """The text that the program gives, or what it complains of."""
    try:
        process = subprocess.run(
            list(command), input=text.encode(), cwd=opened.root, env=without_secrets(), timeout=_SECONDS, check=False,
            capture_output=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [f"no answer within {_SECONDS:.0f} seconds"]
    except OSError as error:
        return [error.strerror or str(error)]
    output = (process.stderr or process.stdout).decode(errors="replace").strip()
    if process.returncode != 0:
        return [output.split("\n")[-1][:500] or f"exit code {process.returncode}"]
    try:
        new = process.stdout.decode()
    except UnicodeDecodeError:
        return ["its output is not UTF-8"]
    return new.replace("\r\n", "\n") if new.strip() else ["it wrote nothing"]
