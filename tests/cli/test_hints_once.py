"""One cause, one message: a hint is printed once a run, and the results keep it for each model."""

from __future__ import annotations

import pytest

from engine.cli.console.printing import printer
from engine.errors import Diagnostic
from engine.events import Diagnosed, RunFinished, RunStarted, fold
from engine.runtime.context.run_results import as_dict

NAMES = ("one", "two", "three")


def test_the_hint_of_a_cause_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    hint = "Put the old table back, or rebuild '{0}': engine build -f -s {0}"
    found = [Diagnosed(Diagnostic("upstream-replaced", f"'{n}' stands behind", hint.format(n), node=n)) for n in NAMES]
    other = Diagnosed(Diagnostic("query-failed", "no such thing", "Write another.", node="one"))
    out = printer("text")
    for event in (*found, other):
        out.event(event)
    text = capsys.readouterr().err
    assert [f"'{name}' stands behind" in text for name in NAMES] == [True, True, True]
    assert text.count("Put the old table back") == 1
    assert "Write another." in text

    results = fold([RunStarted("r", "build", "dev", 3, ""), *found, other, RunFinished(1.0)])
    assert [d.hint for d in results.diagnostics[:3]] == [hint.format(name) for name in NAMES]
    assert as_dict(results, "shop")["results"] == []
