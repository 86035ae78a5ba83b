"""`after_reading`: what was read and committed is archived or deleted, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fault_injection.points import KilledError, kill, reached
from tests.lab import EVENTS, Lab
from tests.sources.test_files_changing import rewrite

pytestmark = pytest.mark.spark

MODEL = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n"


@pytest.fixture
def shop(lab: Lab) -> Lab:
    declare(lab, "after_reading: archive", "archive_path: read/events")
    lab.model("events", MODEL)
    lab.land("a", [{"id": 1}])
    lab.land("deep/b", [{"id": 2}])
    return lab


def declare(lab: Lab, *more: str) -> None:
    text = EVENTS.replace("id int, at timestamp, kind string, amount double", "id int")
    lab.write("sources/shop.yml", text + "".join(f"        {line}\n" for line in more))


def files(lab: Lab, folder: str = "landing/events") -> list[str]:
    top = lab.root / folder
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())


def test_what_was_read_is_archived_with_its_last_batch_and_its_folders(shop: Lab) -> None:
    found = shop.build().model("events")
    assert found["note"] == "2 files of 'shop.events' archived"
    assert files(shop) == []
    assert files(shop, "read/events") == ["a.json", "deep/b.json"]
    assert json.loads((shop.root / "read/events/deep/b.json").read_text()) == {"id": 2}
    shop.land("c", [{"id": 3}])
    shop.build()
    assert files(shop) == []
    assert shop.ids("events") == [1, 2, 3]
    assert shop.build().model("events")["status"] == "unchanged"


def test_what_was_read_is_deleted(shop: Lab) -> None:
    declare(shop, "after_reading: delete")
    assert shop.build().model("events")["note"] == "2 files of 'shop.events' deleted"
    assert files(shop) == []
    assert shop.ids("events") == [1, 2]


@pytest.mark.gate
def test_a_build_that_dies_before_the_commit_puts_nothing_away(shop: Lab) -> None:
    with reached("written", kill):
        assert shop.run("build").code != 0
    assert files(shop) == ["a.json", "deep/b.json"]
    shop.build()
    assert files(shop) == []
    assert shop.ids("events") == [1, 2]


@pytest.mark.gate
def test_a_build_that_dies_after_the_commit_leaves_it_to_the_next(shop: Lab) -> None:
    with reached("reading ended", kill):
        assert shop.run("build").code != 0
    assert shop.ids("events") == [1, 2]
    assert files(shop) == ["a.json", "deep/b.json"]
    assert shop.build().model("events")["note"] == "2 files of 'shop.events' archived"
    assert files(shop) == []


def test_a_file_rewritten_since_it_was_read_stays(shop: Lab) -> None:
    declare(shop, "after_reading: delete", "on_changed_file: ignore")
    with reached("reading ended", kill):
        assert shop.run("build").code != 0
    rewrite(shop.root / "landing/events/a.json", '{"id": 9}\n')
    shop.build()
    assert files(shop) == ["a.json"]


def test_a_name_that_comes_again_is_told(shop: Lab) -> None:
    shop.build()
    shop.land("a", [{"id": 9}])
    result = shop.run("build")
    assert result.codes() == ["file-changed"]
    assert files(shop) == ["a.json"]


def test_an_archive_that_cannot_be_written_is_a_warning(shop: Lab) -> None:
    (shop.root / "read").write_text("in the way")
    result = shop.build()
    (warning,) = [e for e in result.events if e.get("code") == "after-reading-failed"]
    assert warning["level"] == "warning"
    assert "2 files of 'shop.events' cannot be archived or deleted" in warning["message"]
    assert shop.ids("events") == [1, 2]
    (shop.root / "read").unlink()
    assert shop.build().model("events")["note"] == "2 files of 'shop.events' archived"


def test_a_full_refresh_that_would_lose_rows_is_refused(shop: Lab) -> None:
    shop.build()
    result = shop.run("build", "-f")
    assert (result.code, result.codes()) == (1, ["files-gone"])
    assert "Move the files from read/events back to landing/events first." in result.text
    assert shop.ids("events") == [1, 2]
    Path(shop.root / "read/events").rename(shop.root / "landing/again")
    (shop.root / "landing/events").rmdir() if not any((shop.root / "landing/events").iterdir()) else None
    for path in sorted((shop.root / "landing/again").rglob("*.json")):
        target = shop.root / "landing/events" / path.relative_to(shop.root / "landing/again")
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    shop.build("-f", "--accept", "files-gone")
    assert shop.ids("events") == [1, 2]
    assert files(shop) == []


def test_one_file_is_a_source_too(lab: Lab) -> None:
    declare(lab, "after_reading: archive", "archive_path: read")
    text = (lab.root / "sources/shop.yml").read_text()
    lab.write("sources/shop.yml", text.replace("landing/events", "landing/events/a.json"))
    lab.model("events", MODEL)
    lab.land("a", [{"id": 1}])
    lab.build()
    assert files(lab, "read") == ["a.json"]


def test_the_kill_is_one() -> None:
    with pytest.raises(KilledError):
        kill()
