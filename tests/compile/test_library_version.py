"""Versions of libraries are those of their metadata, however they are installed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from engine.compile.pipeline.library_version import library_version


@pytest.mark.parametrize("name", ["sqlglot", "jinja2", "msgspec"])
def test_the_version_is_that_of_the_metadata(name: str) -> None:
    assert library_version(name) == version(name)


@pytest.mark.parametrize(
    ("folders", "versions"),
    [
        (("here/thing-2.0.dist-info",), {"2.0"}),
        (("here/Thing-2.0.dist-info", "here/thing_more-1.0.dist-info"), {"2.0"}),
        # An update that was cut off, and an editable installation, whose metadata is elsewhere.
        (("here/thing-1.0.dist-info", "here/thing-2.0.dist-info"), {"1.0", "2.0"}),
        (("elsewhere/thing-3.0.dist-info",), {"3.0"}),
    ],
)
def test_where_the_folder_beside_it_does_not_say_metadata_does(
    folders: tuple[str, ...], versions: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here/thing").mkdir(parents=True)
    (tmp_path / "here/thing/__init__.py").write_text("")
    for folder in folders:
        path = tmp_path / folder
        path.mkdir(parents=True)
        number = path.name.removesuffix(".dist-info").partition("-")[2]
        (path / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {path.name.partition('-')[0]}\nVersion: {number}\n"
        )
        monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    assert library_version("thing") in versions
