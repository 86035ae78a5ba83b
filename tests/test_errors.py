"""What a diagnostic says of itself."""

from __future__ import annotations

import pickle

import pytest

from engine.errors import Diagnostic, Level, Location, ProjectError, near


def test_an_unknown_code_is_refused():
    with pytest.raises(KeyError):
        Diagnostic("no-such-code", "x")


def test_json_form():
    finding = Diagnostic("unknown-ref", "m", "h", Level.WARNING, "a", Location("models/a.sql", 3, 7))
    assert finding.to_dict() == {
        "level": "warning", "code": "unknown-ref", "node": "a", "file": "models/a.sql", "line": 3, "column": 7,
        "message": "m", "hint": "h",
    }  # fmt: skip
    bare = Diagnostic("usage", "m")
    assert bare.to_dict() == {
        "level": "error", "code": "usage", "node": None, "file": None, "line": None, "column": None,
        "message": "m", "hint": "",
    }  # fmt: skip


def test_a_place_is_filled_in_only_where_it_is_missing():
    here, there = Location("a", 1, 1), Location("b", 2, 2)
    assert Diagnostic("usage", "m").at(here, "n").location == here
    assert Diagnostic("usage", "m", location=there, node="o").at(here, "n") == Diagnostic(
        "usage", "m", location=there, node="o"
    )


def test_an_error_carries_its_finding():
    error = ProjectError("unknown-ref", "model 'x' not found", "Make it.", location=Location("f", 1, 2), node="a")
    assert str(error) == "f:1:2: error: model 'x' not found [unknown-ref]\n    Make it."
    assert error.diagnostic.is_error
    assert str(error.diagnostic.location) == "f:1:2"


def test_an_error_of_several_findings_shows_all_and_goes_from_process_to_process(monkeypatch):
    monkeypatch.setenv("ENGINE_SECRET_KEY", "hunter2hunter2")
    findings = (Diagnostic("usage", "first"), Diagnostic("usage", "has hunter2hunter2", level=Level.WARNING))
    error = ProjectError.from_diagnostics(iter(findings))
    assert str(error) == "error: first [usage]\nwarning: has ***** [usage]"
    sent = pickle.loads(pickle.dumps(error))
    assert (type(sent), sent.diagnostics, sent.diagnostic) == (ProjectError, findings, findings[0])


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("flihgts", ["flights", "airports"], "Did you mean 'flights'?"),
        ("zzz", ["b", "a"], "Known: a, b."),
        ("zzz", list("abcdefghij"), "Known: a, b, c, d, e, f, g, h, ...."),
        ("zzz", [], ""),
    ],
)
def test_near_names(name, known, hint):
    assert near(name, known) == hint
