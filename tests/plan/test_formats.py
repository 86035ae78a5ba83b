"""Facts and states that a released version wrote are read by this one: one file for each format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.compile.nodes.facts import FORM, plain
from engine.errors import StateError
from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from engine.state import TableState
from engine.state.model_state import FORMAT
from tests.plan.test_letter_case import E, manifest

HERE = Path(__file__).with_name("formats")
MODELS = {
    "batch": f"""
---
select id, 'it''s' as a, r'\\d' as b, "x\\"y" as c, v >> 1 as d, .5 as e, cast(null as array<array<int>>) as g
from {E} where v !> 3
""",
    "windowed": f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, 1 hour)'}}
---
select hour.start as begins, concat('it''s', cast(v >>> 1 as string)) as k, count(*) as n
from {E} where v !> 3 group by hour, concat('it''s', cast(v >>> 1 as string))
""",
}


@pytest.mark.parametrize("name", MODELS)
def test_facts_of_version_0_1_0_are_those_of_the_same_query(tmp_path: Path, name: str) -> None:
    """A new `FORM` needs a file of its own, and a way to read this one, or the users' streams start anew."""
    written = json.loads((HERE / f"facts-3-{name}.json").read_text())
    assert written["form"] == FORM
    now = manifest(tmp_path, MODELS[name])
    assert compare_model(now, now.model("m"), LastWriter.from_record("0", written)).change is Change.UNCHANGED
    other = manifest(tmp_path, MODELS[name].replace("'it''s'", "'its'"))
    assert compare_model(other, other.model("m"), LastWriter.from_record("0", written)).change is not Change.UNCHANGED


@pytest.mark.parametrize("form", [None, FORM - 1, FORM + 1])
def test_facts_of_another_format_are_compared_with_nothing(tmp_path: Path, form: int | None) -> None:
    now = manifest(tmp_path, MODELS["windowed"])
    found = compare_model(
        now, now.model("m"), LastWriter.from_record("0", {**plain(now.model("m").facts), "form": form})
    )
    assert found.change is Change.IDENTITY_CHANGED
    assert found.reasons[0].endswith(f"is recorded in format {form}, and this version reads format {FORM}")


def table(root: Path, content: str) -> TableState:
    folder = root / "lake/s/m/1"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text(content)
    return TableState(root, "lake", "s", "m")


def test_a_state_of_version_0_1_0_is_read(tmp_path: Path) -> None:
    text = (HERE / "model-1.json").read_text()
    (state,) = table(tmp_path, text).states()
    assert state.format == FORMAT == 1
    # What is not read would be lost with the next write.
    assert set(json.loads(text)) == {*state.__dataclass_fields__}
    assert (state.batch, state.generation_id, state.phase) == (1, "0f2c5f0cbbd14e4f8c7a2f6a3f1f7a11", "published")


def test_a_state_of_another_format_is_not_read(tmp_path: Path) -> None:
    text = (HERE / "model-1.json").read_text().replace('"format": 1', '"format": 2')
    with pytest.raises(StateError, match="it has format 2, and this version reads format 1") as caught:
        table(tmp_path, text).states()
    assert caught.value.diagnostic.code == "state-unreadable"
