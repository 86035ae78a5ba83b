"""Secrets in spark.log are masked in place, while Java goes on writing to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.secrets import scrubber as secrets
from engine.spark.jvm import LogMask
from tests.lab import LabSession, wait_until

SECRET = "planted-word-of-the-log"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_SECRET_X", SECRET)


def masked(path: Path) -> str:
    mask = LogMask(path)
    mask.close()
    return path.read_text(errors="surrogateescape")


def test_what_is_there_already_is_masked_and_keeps_its_place(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    text = f"first\npassword={SECRET}; \u00fc\u4e2d {SECRET.upper()}\npostgresql://me:another-word@db.example/x\nlast\n"
    log.write_text(text)
    found = masked(log)
    assert found == text.replace(SECRET, "*" * len(SECRET)).replace(SECRET.upper(), "*" * len(SECRET)).replace(
        "another-word", "*" * len("another-word")
    )
    assert log.stat().st_size == len(text.encode())


def test_bytes_that_are_no_text_stay(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_bytes(b"\xff\xfe " + SECRET.encode() + b" \x80\x00end\n")
    masked(log)
    assert log.read_bytes() == b"\xff\xfe " + b"*" * len(SECRET) + b" \x80\x00end\n"


def test_a_key_of_several_lines_keeps_its_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_SECRET_KEY", PEM)
    log = tmp_path / "spark.log"
    log.write_text(f"begin {PEM} end\n")
    found = masked(log)
    assert "MIIEvQ" not in found
    assert found.count("\n") == PEM.count("\n") + 1
    assert found.startswith("begin *")
    assert found.endswith(" end\n")


def test_a_secret_across_the_parts_that_are_read_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.spark.jvm._CHUNK", 4096)
    monkeypatch.setattr("engine.spark.jvm._OVERLAP", 128)
    log = tmp_path / "spark.log"
    log.write_text("".join(f"{'x' * (number % 97)}{SECRET}\n" for number in range(500)))
    assert SECRET not in masked(log)


def test_a_secret_that_becomes_known_later_is_masked_in_what_was_written_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_registered", frozenset())
    log = tmp_path / "spark.log"
    log.write_text("a-token-of-tomorrow\n")
    mask = LogMask(log)
    mask.mask()
    assert "tomorrow" in log.read_text()
    secrets.register_secret("a-token-of-tomorrow")
    mask.close()
    assert "tomorrow" not in log.read_text()


def test_another_process_appends_meanwhile(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.touch()
    script = (
        "import os, sys\nd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)\n"
        f"for n in range(2000): os.write(d, f'{{n}} {SECRET} \\u00fc\\n'.encode())"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(log)])
    mask = LogMask(log)
    while writer.poll() is None:
        mask.mask()
    mask.close()
    lines = log.read_text().splitlines()
    assert lines == [f"{number} {'*' * len(SECRET)} \u00fc" for number in range(2_000)]


def test_a_link_or_another_file_in_its_place_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(SECRET)
    (tmp_path / "spark.log").symlink_to(other)
    LogMask(tmp_path / "spark.log").close()
    assert other.read_text() == SECRET
    (tmp_path / "spark.log").unlink()
    os.mkfifo(tmp_path / "spark.log")
    LogMask(tmp_path / "spark.log").close()
    LogMask(tmp_path / "gone.log").close()


def test_the_log_is_masked_while_it_is_open(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.touch()
    mask = LogMask(log)
    log.write_text(f"{SECRET}\n")
    assert wait_until(lambda: SECRET not in log.read_text())
    mask.close()


@pytest.mark.spark
def test_java_prints_secrets_and_goes_on_behind_them(lab_session: LabSession) -> None:
    log = lab_session._folder / "logs" / "spark.log"
    java = lab_session.spark.sparkContext._jvm.java.lang.System
    for number in range(200):
        java.err.println(f"{number} {SECRET}")
    session = lab_session._session
    session.jvm.mask.mask()
    java.err.println("after the mask")
    wait_until(lambda: "after the mask" in log.read_text())
    text = log.read_text()
    assert SECRET not in text
    assert f"199 {'*' * len(SECRET)}\n" in text
    assert text.endswith("after the mask\n")
    assert "\0" not in text
