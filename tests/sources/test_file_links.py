"""Links, devices and names that no source may have: one rule for every command that looks at files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.sources import listing
from engine.sources.spec import Place, SourceSpec
from tests.lab import Lab, event

SOURCE = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: {path}
        schema: "id int, at timestamp"
        freshness: {{error_after: 90 days}}
"""
STREAM = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n"


def loop(folder: Path) -> None:
    (folder / "loop").symlink_to(".")


def loop_below(folder: Path) -> None:
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/up").symlink_to("../..")


def folder_outside(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder.parent / "other/x.json").write_text('{"id": 9}\n')
    (folder / "link").symlink_to(folder.parent / "other")


def file_outside(folder: Path) -> None:
    (folder.parent / "secret.json").write_text('{"id": 9}\n')
    (folder / "link.json").symlink_to(folder.parent / "secret.json")


def device(folder: Path) -> None:
    (folder / "zero").symlink_to("/dev/zero")


def file_beside(folder: Path) -> None:
    (folder / "latest.json").symlink_to("first.json")


def folder_beside(folder: Path) -> None:
    (folder / "day=1").mkdir()
    (folder / "today").symlink_to("day=1")


def version_twice(folder: Path) -> None:
    (folder / ".v/1").mkdir(parents=True)
    (folder / "one").symlink_to(".v/1")
    (folder / "two").symlink_to(".v/1")


def loop_in_a_version(folder: Path) -> None:
    (folder / ".v/1").mkdir(parents=True)
    (folder / "data").symlink_to(".v/1")
    (folder / ".v/1/self").symlink_to(".")


def colon(folder: Path) -> None:
    (folder / "2024-05-01T10:00:00.json").write_text('{"id": 9}\n')


FAULTS = (
    loop, loop_below, folder_outside, file_outside, device, file_beside, folder_beside, version_twice, loop_in_a_version, colon,
)  # fmt: skip


def version(folder: Path) -> None:
    """As Kubernetes mounts a volume."""
    (folder / "..2024").mkdir()
    (folder / "..2024/x.json").write_text('{"id": 2}\n')
    (folder / "..data").symlink_to("..2024")
    (folder / "x.json").symlink_to("..data/x.json")


def broken(folder: Path) -> None:
    (folder / "broken").symlink_to("nowhere")
    (folder / "itself").symlink_to("itself")


def ignored(folder: Path) -> None:
    (folder / "_link").symlink_to("/")
    (folder / ".loop").symlink_to(".")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


HARMLESS = {version: 2, broken: 1, ignored: 1, pipe: 1}


def spec(path: Path | str) -> SourceSpec:
    return SourceSpec("shop.events", "json", "id int", settings={"path": str(path)})


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "first.json").write_text('{"id": 1}\n')
    return folder


@pytest.mark.parametrize("spoil", FAULTS)
def test_what_may_not_be_below_a_folder(landing: Path, spoil: Callable[[Path], None]) -> None:
    spoil(landing)
    for look in (listing.listed_here, listing.check_here):
        with pytest.raises(SetupError) as refused:
            look(spec(landing), Place(landing.parent))
        assert refused.value.diagnostic.code == "source-path"


@pytest.mark.parametrize("spoil", HARMLESS)
def test_what_may_be_there(landing: Path, spoil: Callable[[Path], None]) -> None:
    spoil(landing)
    listing.check_here(spec(landing), Place(landing.parent))
    assert len(listing.listed_here(spec(landing), Place(landing.parent)) or ()) == HARMLESS[spoil]


def test_a_path_that_is_a_link_leads_anywhere(landing: Path) -> None:
    link = landing.parent / "link"
    link.symlink_to(landing)
    assert [file.uri for file in listing.listed_here(spec(link), Place(link.parent)) or ()] == [
        f"file:{link}/first.json"
    ]


def paths(folder: Path) -> list[Path]:
    os.mkfifo(folder / "pipe")
    for name in ("_hidden.json", ".hidden.json", "x._COPYING_", "_metadata", "a:b.json"):
        (folder / name).write_text("{}\n")
    named = socket.socket(socket.AF_UNIX)
    named.bind(str(folder / "s"))
    named.close()
    return [Path("/dev/zero"), Path("/dev/null"), *(p for p in folder.iterdir() if p.name != "first.json")]


def test_a_path_that_is_not_a_file(landing: Path) -> None:
    for path in paths(landing):
        with pytest.raises(SetupError) as refused:
            listing.check_here(spec(path), Place(landing.parent))
        assert refused.value.diagnostic.code == "source-path", path


@pytest.mark.spark
@pytest.mark.parametrize("spoil", [loop, folder_outside, "/dev/zero", "pattern"])
def test_every_command_has_the_same_rule(lab: Lab, spoil: Callable[[Path], None] | str) -> None:
    path = "landing/*" if spoil == "pattern" else spoil if isinstance(spoil, str) else "landing/events"
    lab.write("sources/shop.yml", SOURCE.format(path=path))
    lab.model("stream", STREAM)
    lab.model("batch", STREAM.partition("*/\n")[2])
    lab.land("a", [event(1)])
    (folder_outside if isinstance(spoil, str) else spoil)(lab.root / "landing/events")
    for command in (["build"], ["source", "inspect", "shop.events"], ["source", "freshness"], ["build", "-s", "batch"]):
        ended = lab.run(*command)
        assert ended.code == 1, (command, ended.text)
        assert "source 'shop.events' cannot be read" in ended.text, (command, ended.text)
        assert "internal-error" not in ended.text
    # Only Spark finds what a pattern matches.
    if spoil != "pattern":
        assert "source-path" in lab.run("plan").codes()
    assert lab.table("batch") is None
    assert lab.table("stream") is None or lab.ids("stream") == []


@pytest.mark.spark
def test_a_link_that_lands_while_a_stream_runs_is_not_followed(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCE.format(path="landing/events"))
    lab.model("stream", STREAM)
    lab.land("a", [event(1)])
    lab.build("-s", "stream")
    lab.land("b", [event(2)])
    with pytest.MonkeyPatch.context() as patch:
        # It lands after the folder was looked at, and before the stream lists it.
        folder = lab.root / "landing/events"
        patch.setattr(listing, "check_here", lambda *_: (folder / "link.json").exists() or file_outside(folder))
        patch.setattr(listing, "listed_here", lambda *_: None)
        ended = lab.run("build", "-s", "stream")
    assert (ended.code, "source-path" in ended.codes()) == (1, True), ended.text
    assert lab.ids("stream") == [1]
