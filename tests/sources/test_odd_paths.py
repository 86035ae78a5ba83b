"""Paths of sources that Hadoop cannot read are rejected before Java starts, with the letter that is in the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import Diagnostic, SetupError
from engine.sources import listing
from engine.sources.spec import Place, SourceSpec


def reason(root: Path, path: str) -> str:
    """Why the files of a source cannot be read; empty: they can."""
    found: list[Diagnostic] = []
    with catching(found):
        listing.check_here(SourceSpec("s.t", "json", "", settings={"path": path}), Place(root))
    assert [one.code for one in found] in ([], ["source-path"])
    return found[0].message if found else ""


@contextmanager
def catching(found: list[Diagnostic]) -> Iterator[None]:
    try:
        yield
    except SetupError as error:
        found += error.diagnostics


def land(root: Path, *files: str) -> None:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("{}")


@pytest.mark.parametrize(("folder", "path", "letter"), [
    ("a:b", "landing/*.json", "*"),
    ("a:b[c]", "landing", "]"),
    ("a:b", "landing/{2024,2025}", "}"),
    ("a?", "landing/x:y", "?"),
    ("a\\b", "c:d", "\\"),
])  # fmt: skip
def test_a_colon_on_the_way_to_a_letter_of_a_pattern(tmp_path: Path, folder: str, path: str, letter: str) -> None:
    root = tmp_path / folder
    land(root, "landing/a.json", "landing/x:y/a.json", "c:d/a.json")
    said = reason(root, path)
    assert "has a colon" in said
    assert f"the letter '{letter}' of a pattern" in said


@pytest.mark.parametrize(("folder", "path"), [
    ("a:b", "landing"), ("a:b", "landing/x:y"), ("a[b]?*{c}\\", "landing"), ("a b%20", "landing/*.json"), ("a", "l*g/a.json"),
])  # fmt: skip
def test_either_of_them_alone_is_read(tmp_path: Path, folder: str, path: str) -> None:
    root = tmp_path / folder
    land(root, "landing/a.json", "landing/x y/a.json", *(["landing/x:y/a.json"] if ":" in folder else []))
    assert reason(root, path) == ""


@pytest.mark.parametrize(("path", "wrong"), [
    ("landing/*.json", "landing/c:d"),
    ("landing/x*/*.json", "landing/c:d"),
    ("landing/x*/*.json", "landing/x1/e:f.json"),
    (r"landing/\[x\]/*", ""),
    ("landing/other/*", ""),
    ("landing/{other,third}/*.json", "landing/c:d"),
])  # fmt: skip
def test_names_that_a_pattern_is_compared_with(tmp_path: Path, path: str, wrong: str) -> None:
    land(
        tmp_path,
        "landing/c:d/a.json",
        "landing/x1/e:f.json",
        "landing/other/a.json",
        "landing/[x]/a.json",
        "landing/y/g:h.json",
    )
    said = reason(tmp_path, path)
    assert (f"{tmp_path}/{wrong} has a colon in its name" in said) if wrong else said == ""
    assert "g:h" not in said, "its folder does not match"


@pytest.mark.parametrize("file", [b"landing/a\xff.json", b"landing/b\xfe/a.json"])
@pytest.mark.skipif(os.uname().sysname == "Darwin", reason="names are UTF-8 there")
def test_a_name_that_is_not_utf8(tmp_path: Path, file: bytes) -> None:
    land(tmp_path, os.fsdecode(file))
    said = reason(tmp_path, "landing")
    assert "in its name, which is not UTF-8, and Java cannot open it" in said
    assert "0xFF" in said or "0xFE" in said
