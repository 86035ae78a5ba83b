"""Edits that mean nothing, made at random in the models of the histories: none is rejected, and where there is state none
counts as another query.

python -m tests.plan.test_harmless_edits 5000 3
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from engine.compile import Manifest
from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from tests.histories.kinds import FEED, KINDS, MACRO, PROJECT_SETTINGS, SOURCES, Kind
from tests.lab import PROJECT
from tests.project.small_projects import clean

pytestmark = pytest.mark.slow

# Of each setting the values that mean the same; of one that is not here all values mean something else.
_SAME: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "size": (("1 hour", "60 minutes"),),
    "bound": (("1 hour", "60 minutes"),),
    "keys": (("[id, kind]", "[kind, id]"),),
    "columns": (("count(*) as n, <aggregate> as amount", "<aggregate> as amount, count(*) as n"),),
    "field": (("amount", "`amount`"),),
    "bits": (("id | 4 & 2", "id | (4 & 2)"),),
}
_ALL_THE_SAME = {"style", "alias"}
# Of the others tests have names, and a name is in a project once.
_TRIED = [kind for kind in KINDS.values() if not kind.tested and FEED not in kind.sources]


def pairs(dice: random.Random, count: int) -> Iterator[tuple[Kind, dict[str, str], dict[str, str]]]:
    """A kind of model with its settings, and with settings that mean the same."""
    found = 0
    while found < count:
        kind = dice.choice(_TRIED)
        before = {name: dice.choice(values) for name, values in kind.settings.items()}
        after = {name: dice.choice(_alike(kind, name, value)) for name, value in before.items()}
        if kind.file(before) != kind.file(after):
            found += 1
            yield kind, before, after


def _alike(kind: Kind, name: str, value: str) -> tuple[str, ...]:
    if name in _ALL_THE_SAME:
        return kind.settings[name]
    return next((values for values in _SAME.get(name, ()) if value in values and kind.name != "down"), (value,))


def compiled(root: Path, texts: Mapping[str, str]) -> Manifest:
    """A project of the histories with some models."""
    first = {name: values[0] for name, values in PROJECT_SETTINGS.items()}
    read = [KINDS[name] for name in {kind.upstream for kind in _TRIED} if name]
    return clean(
        root,
        {
            "project.yml": PROJECT.format(lake=".engine/lake", schema="s") + f"vars: {{factor: {first['factor']}}}\n",
            "sources/shop.yml": SOURCES.replace("<path>", first["path"]).replace("<schema>", first["schema"]),
            "macros/scaled.sql": MACRO.replace("<macro>", first["macro"]),
            **{
                f"models/{kind.name}.sql": kind.file({name: values[0] for name, values in kind.settings.items()})
                for kind in read
            },
            **{f"models/{name}.sql": text for name, text in texts.items()},
        },
    )


def faults(root: Path, seed: int, count: int) -> list[str]:
    """What is wrong in the comparisons of some pairs."""
    tried = list(pairs(random.Random(seed), count))
    earlier = {f"m{number}": kind.file(before) for number, (kind, before, _) in enumerate(tried)}
    later = {f"m{number}": kind.file(after) for number, (kind, _, after) in enumerate(tried)}
    olds, news = compiled(root / "earlier", earlier), compiled(root / "later", later)
    found = []
    for (name, text), (kind, *_) in zip(earlier.items(), tried, strict=True):
        old = olds.model(name)
        said = compare_model(news, news.model(name), LastWriter(old.fingerprint, old.facts))
        # Without state the text decides, and another one at most computes a table again, or is noted.
        if said.refusal is not None or (kind.stateful and said.change is not Change.UNCHANGED):
            found.append(f"{said.change.value} {said.reasons}\n{text}\n{later[name]}")
    return found


def test_an_edit_that_means_nothing_changes_nothing(tmp_path: Path) -> None:
    assert faults(tmp_path, 1, 200) == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        wrong = faults(Path(folder), int(sys.argv[2]), int(sys.argv[1]))
    print(*wrong, f"{sys.argv[1]} edits, {len(wrong)} of them wrong", sep="\n")
    sys.exit(1 if wrong else 0)
