"""The engine's log of a process that runs for weeks, and of one whose disk is full."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from engine import target_folder
from engine.cli.console.log_level import LogLevel
from engine.cli.console.printing import JsonPrinter
from engine.cli.log_output import logged


@pytest.mark.slow
def test_the_log_keeps_its_newest_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_folder, "_LOG_LIMIT", 20_000)
    monkeypatch.setattr(target_folder, "_LOG_TAIL", 5_000)
    path = tmp_path / "engine.log"
    with logged(JsonPrinter(), LogLevel.INFO, path.open("ab")):
        for number in range(1000):
            logging.getLogger("engine.test").warning("line %d %s", number, "x" * 50)
            assert path.stat().st_size < 20_200
    lines = path.read_text().splitlines()
    numbers = [int(line.split(" line ")[1].split()[0]) for line in lines]
    assert numbers == list(range(numbers[0], 1000))
    assert len(numbers) > 40


def test_a_full_disk_costs_lines_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    full = os.fdopen(os.open("/dev/full", os.O_WRONLY | os.O_APPEND), "ab", buffering=0)
    with logged(JsonPrinter(), LogLevel.INFO, full):  # type: ignore[arg-type]
        for number in range(10):
            logging.getLogger("engine.test").warning("line %d", number)
    assert capfd.readouterr().err == ""
