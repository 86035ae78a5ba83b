"""Fixture files are read without losing a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import Pair, read_pairs

FILE = """\
-- What the file shows: its prose.

-- header
tags: [a]

-- case: one
-- modes: append update
select 1 -- expect nothing

-- a comment
-- expect
first

second

-- case: two
select 2
-- header
tags: [b]
-- expect
"""


def read(folder: Path, text: str) -> list[Pair]:
    (folder / "file.sql").write_text(text, encoding="utf-8")
    return read_pairs(folder)


def test_the_parts_of_a_case(tmp_path: Path) -> None:
    one, two = read(tmp_path, FILE)
    assert str(one) == "file: one"
    assert one.given == "select 1 -- expect nothing\n\n-- a comment"
    assert one.expected == "first\n\nsecond"
    assert one.parts == {"header": "tags: [a]", "modes": "append update"}
    assert (two.given, two.expected, two.parts) == ("select 2", "", {"header": "tags: [b]"})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("-- expect\nfirst", "-- expct\nfirst", "unknown part 'expct'"),
        ("-- modes:", "-- mode:", "unknown part 'mode'"),
        ("-- expect\nfirst", "first", "expect"),
        ("second", "-- expect", "two parts 'expect'"),
    ],
)
def test_what_a_file_gets_wrong(before: str, after: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"file\.sql: .*{message}"):
        read(tmp_path, FILE.replace(before, after))
