"""State that somebody else made: commands that only read it neither hang, nor fail, nor read a link."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.state.operations import FILES
from tests.lab import Lab
from tests.projects import LAB as PROJECT
from tests.security import answers

pytestmark = pytest.mark.slow

MODEL = "/*---\nstreams: {shop.events: {watermark: at delay 10 minutes}}\n---*/\nselect id, at from {{ source('shop', 'events') }}"


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    lab = Lab(tmp_path, None, capsys, schema="s")
    lab.write("project.yml", PROJECT)
    lab.model("m", MODEL)
    state(lab, json.dumps({"table": "lake.s.m", "generation": 1, "phase": "published"}), '{"nextBatchWatermarkMs": 5}')
    return lab


def state(lab: Lab, model: str, commit: str) -> Path:
    folder = lab.state / "m" / "1"
    lab.write(str(folder / "model.json"), model)
    lab.write(str(folder / "checkpoint" / "commits" / "0"), f"v1\n{commit}")
    return folder


DEEP = "[" * 100_000
HOSTILE = {
    "deep": DEEP,
    "a list": "[1]",
    "a long number": '{"generation": ' + "9" * 5_000 + "}",
    "no UTF-8": "\udcff",
    "a watermark that is a list": '{"nextBatchWatermarkMs": [1]}',
    "an infinite watermark": '{"nextBatchWatermarkMs": 1e999}',
    "a text": '{"nextBatchWatermarkMs": "soon"}',
    "a far one": '{"nextBatchWatermarkMs": 99999999999999999999}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["model.json", "checkpoint/commits/0"])
def test_damaged_state_leaves_the_site_as_it_is(
    lab: Lab, name: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = lab.state / "m" / "1" / name
    path.write_bytes((text if name == "model.json" else f"v1\n{text}").encode(errors="surrogateescape"))
    done = lab.run("docs", "generate")
    assert done.code == 0, done.text


@pytest.mark.parametrize("name", ["model.json", "checkpoint/commits/0"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_pipe_or_a_link_instead_of_a_file_is_not_read(
    lab: Lab, name: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = lab.state / "m" / "1" / name
    path.rename(lab.root / "elsewhere")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(lab.root / "elsewhere")
    done = lab.run("docs", "generate")
    assert done.code == 0, done.text
    assert "the watermark of m cannot be shown" in caplog.text


READING = [("plan",), ("docs", "generate"), ("state", "m"), ("drop", "m", "--yes")]


@pytest.fixture
def built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    """A table with its state, as a build leaves them."""
    lab = Lab(tmp_path / "lab", None, capsys, schema="s")
    lab.root = answers.built(tmp_path / "built")
    return lab


# `isdigit` is true of the first, and int() takes neither it nor the second.
@pytest.mark.parametrize("name", ["\u00b2", "9" * 200, "-1"])
@pytest.mark.parametrize("folder", [".", "1/checkpoint/commits", "1/checkpoint/offsets", "1/checkpoint/sources"])
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_name_that_no_run_gave_is_no_number(built: Lab, command: tuple[str, ...], folder: str, name: str) -> None:
    path = built.state / "m" / folder / name
    path.mkdir()
    (path / ("model.json" if folder == "." else "0")).write_text("{}")
    done = built.run(*command)
    assert done.code in {0, 1, 2}, done.text
    assert "internal-error" not in done.text


@pytest.mark.parametrize("value", ["\u00b2", "9" * 5000, "x", "-1", ""])
@pytest.mark.parametrize("command", READING[:2], ids=" ".join)
def test_markers_of_a_table_that_no_run_wrote_are_no_numbers(built: Lab, command: tuple[str, ...], value: str) -> None:
    path = max((built.root / ".engine/lake").rglob("*.metadata.json"))
    metadata = json.loads(path.read_text())
    for markers in (metadata["properties"], *(snapshot["summary"] for snapshot in metadata["snapshots"])):
        markers |= {
            "engine.generation": value,
            "engine.batch-id": value,
            "total-files-size": value,
            "total-records": value,
        }
    path.write_text(json.dumps(metadata))
    done = built.run(*command)
    assert done.code in {0, 1, 2}, done.text
    assert "internal-error" not in done.text


# By file: what is in it, and whether a plan then says that the state cannot be read.
DAMAGED = {
    "a log without a path": ("checkpoint/sources/0/0", b'v1\n{"path":null,"timestamp":5,"batchId":0}', True),
    "a log of a list": ("checkpoint/sources/0/0", b'v1\n["path"]', False),
    "offsets that are no text": ("checkpoint/offsets/1", b"v1\n{}\n\x80", True),
    "another generation": ("model.json", b'{"table": "lake.s.m", "generation": "xx"}', True),
    "parts of other types": ("model.json", b'{"table": "lake.s.m", "generation": 1, "inputs": [1]}', True),
    "a query's id that is an object": ("model.json", b'{"table": "lake.s.m", "query_id": {}}', True),
    "a text where an object is": ("model.json", b'{"table": "lake.s.m", "starts": {"model.a": "x"}}', True),
    "a fingerprint that is a path": ("model.json", b'{"table": "lake.s.m", "fingerprint": "../../x"}', True),
}


@pytest.mark.parametrize(("name", "content", "unreadable"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_state_is_an_error_of_a_plan(built: Lab, name: str, content: bytes, unreadable: bool) -> None:
    (built.state / "m" / "1" / name).write_bytes(content)
    done = built.run("plan")
    assert done.code == 1, done.text
    assert ("state-unreadable" in done.codes()) == unreadable, done.text
    assert "internal-error" not in done.text


DAMAGED = {
    "no UTF-8": lambda path: path.write_bytes(b"v1\xff"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "nothing": lambda path: path.write_bytes(b""),
}


def test_large_logs_of_a_checkpoint_are_not_taken_into_memory(tmp_path: Path) -> None:
    root = answers.built(tmp_path / "p")
    checkpoint = root / ".engine/state/lake/s/m/1/checkpoint"
    for name in ("metadata", "offsets/1", "commits/1", "sources/0/0"):
        with (checkpoint / name).open("r+b") as file:
            file.truncate(3 << 30)
    code = (
        "import resource, sys; from engine.cli.main import invoke\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({2 << 30}, {2 << 30}))\n"
        f"sys.exit(invoke(['plan', '--project-dir', {str(root)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "MemoryError" not in done.stdout + done.stderr


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("log", ["commits", "offsets"])
def test_a_damaged_log_of_a_checkpoint_ends_in_a_diagnostic(tmp_path: Path, damage, log: str, capsys) -> None:
    root = answers.built(tmp_path / "p")
    damage(root / ".engine/state/lake/s/m/1/checkpoint" / log / "1")
    assert invoke(["plan", "--project-dir", str(root)]) in (0, 1)
    assert "internal" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("note", [*FILES, "1/previous.json"])
@pytest.mark.parametrize("text", ["[1]", "5", "null", '"x"', "{}"])
def test_a_note_that_is_no_object_ends_in_a_diagnostic(tmp_path: Path, note: str, text: str, capsys) -> None:
    root = answers.built(tmp_path / "p")
    (root / ".engine/state/lake/s/m" / note).write_text(text)
    assert invoke(["plan", "--project-dir", str(root)]) in (0, 1)
    assert "internal" not in "".join(capsys.readouterr())
