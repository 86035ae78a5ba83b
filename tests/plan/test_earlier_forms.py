"""Facts in the second normal form, which wrote `'it''s'` and `'it' 's'` in one way, and some signs as several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from tests.plan.test_letter_case import E, manifest

# As the version before this form recorded them.
SECOND_FORM = json.loads(Path(__file__).with_name("facts_of_the_second_form.json").read_text())
WINDOWED = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, 1 hour)'}}
---
select hour.start as begins, concat(%s, cast(v >>> 1 as string)) as k, count(*) as n
from {E} where v !> 3 group by hour, concat(%s, cast(v >>> 1 as string))
"""
BATCH = f"""
---
select id, %s as a, r'\\d' as b, "x\\"y" as c, v >> 1 as d, .5 as e, v << 2 as f, cast(null as array<array<int>>) as g
from {E} where v !> 3
"""
PATTERNS = {"batch": BATCH, "windowed": WINDOWED}


@pytest.mark.parametrize("name", PATTERNS)
def test_facts_without_adjacent_strings_mean_what_they_say(tmp_path: Path, name: str) -> None:
    pattern = PATTERNS[name]
    for text, same in (("'its'", True), ('"its"', True), ("r'its'", True), ("'it''s'", False), ("'its '", False)):
        after = manifest(tmp_path, pattern.replace("%s", text))
        found = compare_model(after, after.model("m"), LastWriter("0", SECOND_FORM[f"{name} its"]))
        assert (found.change is Change.UNCHANGED) is same, (text, found)


@pytest.mark.parametrize(("name", "change"), [("batch", Change.REBUILT), ("windowed", Change.FORWARD)])
def test_a_doubled_quote_is_not_taken_for_the_same(tmp_path: Path, name: str, change: Change) -> None:
    for text in ("'it''s'", "'it' 's'"):
        after = manifest(tmp_path, PATTERNS[name].replace("%s", text))
        found = compare_model(after, after.model("m"), LastWriter("0", SECOND_FORM[f"{name} it's"]))
        assert found.change is change
        assert "recorded 'it''s' and 'it' 's' alike" in " ".join(found.reasons)
    after = manifest(tmp_path, PATTERNS[name].replace("%s", "'is'"))
    found = compare_model(after, after.model("m"), LastWriter("0", SECOND_FORM[f"{name} it's"]))
    assert found.change is (Change.STATE_BREAKING if name == "windowed" else Change.REBUILT)
