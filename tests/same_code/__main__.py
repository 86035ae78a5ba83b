"""Whether a commit changes nothing but names, docstrings and comments of Python files.

    python -m tests.same_code [FROM [TO]]

Compares each changed file of two commits (HEAD~ and HEAD unless given) and prints the renamed names. Ends with 1 when
anything else differs, with the first place of each file.
"""

from __future__ import annotations

import subprocess
import sys

from tests.same_code.compare import DifferenceError, compare


def main() -> int:
    old, new = ([*sys.argv[1:], "HEAD~", "HEAD"][:2]) if len(sys.argv) != 2 else (sys.argv[1], "HEAD")
    failed = False
    names: set[tuple[str, str]] = set()
    for line in _git("diff", "--name-status", "--find-renames=40%", old, new, "--", "*.py").splitlines():
        status, *paths = line.split("\t")
        if status in ("A", "D"):
            print(f"{paths[0]}: {'new' if status == 'A' else 'deleted'}")
            failed = True
            continue
        try:
            names |= compare(_git("show", f"{old}:{paths[0]}"), _git("show", f"{new}:{paths[-1]}"))
        except DifferenceError as difference:
            print(f"{paths[-1]}:{difference}")
            failed = True
    for before, after in sorted(names):
        print(f"  {before} -> {after}")
    return int(failed)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
