"""What a build beside replaces while a plan reads it is read again; all models wait for the same pauses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.compile import Catalog, Target
from engine.errors import StateError
from engine.plan.deployed import read_deployed
from engine.plan.deployed.deployed_facts import DeployedModel


def test_a_hundred_models_that_cannot_be_read_take_two_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("engine.plan.deployed.read_deployed.time.sleep", pauses.append)
    asked = [0] * 100

    def read(number: int) -> Any:
        def once() -> DeployedModel:
            asked[number] += 1
            if number % 2 or asked[number] < 2:
                raise StateError("state-unreadable", f"{number} cannot be read", "")
            return DeployedModel()

        return once

    found = read_deployed._read_with_retries(
        Target("dev", Catalog("sqlite", "lake", tmp_path), "main", tmp_path), [read(number) for number in range(100)]
    )
    assert len(pauses) == 2
    assert [[fault.message for fault in one.faults] for one in found] == [
        [f"{number} cannot be read"] if number % 2 else [] for number in range(100)
    ]
    assert asked == [3 if number % 2 else 2 for number in range(100)]
