"""What the chains are made of; `python -m tests.chains` builds them."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest

from tests.chains.edits import EDITS, begun, edited
from tests.chains.shapes import KINDS, Expected
from tests.chains.world import Chain, write
from tests.lab import Lab


def test_models_of_each_kind_compile_in_each_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab, chance = Lab(tmp_path, None, capsys), random.Random(7)
    shapes = [begun(chance, number) for number in range(40)]
    done = set()
    for shape in shapes:
        for _ in range(4):
            done.add(edited(chance, shape))
        # The first build of such a model continues nothing.
        shape.renamed, shape.stage_renamed, shape.renamed_from, shape.stage_renamed_from = {}, {}, "", ""
    assert {shape.kind for shape in shapes} == set(KINDS)
    assert done >= set(EDITS) - {"limit of HAVING"}
    write(lab, [Chain(shape, 2) for shape in shapes])
    result = lab.run("compile")
    assert result.code == 0, result.text


def test_rows_keep_the_meaning_with_which_they_were_written() -> None:
    shape = next(s for s in (begun(random.Random(n), n) for n in range(99)) if s.kind == "grouped" and len(s.keys) == 1)
    expected = Expected()
    row = {"k": "x", "j": "y", "a": 1, "b": 100, "c": 10_000, "ts": "2024-05-01T00:10:00Z"}
    expected.build(shape, {"l": [row]})
    calls = [item for item in shape.items if item.call]
    before = copy.deepcopy(list(expected.rows.values()))
    calls[0].name, calls[1].name = calls[1].name, calls[0].name
    expected.build(shape, {"l": []})
    assert list(expected.rows.values()) == before
    shape.renamed = {"other": calls[0].name}
    calls[0].name = "other"
    expected.build(shape, {"l": []})
    (kept,) = expected.rows.values()
    assert "other" in kept
