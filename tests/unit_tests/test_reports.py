"""JUnit XML and pytest, over a project of batch models."""

from __future__ import annotations

import os
from unittest.mock import patch
from xml.etree import ElementTree as ET

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark

UNITS = """
unit_tests:
  - {name: sum, model: two, given: {one: [{n: 1}]}, expect: [{n: 2}]}
  - {name: wrong, model: two, tags: [odd], given: {one: [{n: 2}]}, expect: [{n: 4}]}
"""


@pytest.fixture
def two(lab: Lab) -> Lab:
    lab.model("one", "/*---\ncolumns: {n: {tests: [not_null]}}\n---*/\nselect 1 as n")
    lab.model("two", "select n + 1 as n from {{ ref('one') }}")
    lab.write("tests/units.yml", UNITS)
    return lab


def test_a_report_for_ci_and_items_of_pytest(two: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    two.build("-s", "one")
    report = two.root / "out" / "junit.xml"
    assert two.run("test", "--junit-xml", str(report)).code == 1
    suite = ET.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    cases = {(c.get("classname"), c.get("name")): c for c in suite}
    assert set(cases) == {("unit_test.two", "sum"), ("unit_test.two", "wrong"), ("data_test.one", "not_null_one_n")}
    wrong = cases["unit_test.two", "wrong"]
    assert (wrong.get("file"), wrong.get("line")) == ("tests/units.yml", "4")
    assert wrong[0].tag == "failure"
    assert "- | *4* |" in (wrong[0].text or "")

    own = two.write("test_beside.py", "def test_own():\n    pass\n")
    # The plugin of pytest-lsp fails for every item that is no function.
    arguments = ["-p", "no:headrace", "-p", "headrace.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:pytest-lsp"]
    arguments += ["-c", os.devnull]
    arguments += ["--rootdir", str(two.root), "-v", "--engine-project", str(two.root), str(own)]
    both = "test_type:unit test_type:data"
    capsys.readouterr()
    assert pytest.main([*arguments, "--engine-select", both]) == pytest.ExitCode.TESTS_FAILED
    out = capsys.readouterr().out
    assert "3 passed" in out
    assert "1 failed" in out
    assert "tests/units.yml:4:68: error: 1 row differs of 'two' [unit-test-failed]" in out
    assert "Traceback" not in out
    # It passed a moment ago, with the same rows: no session is opened.
    with patch("engine.api.project.Project.session", side_effect=AssertionError):
        assert pytest.main([*arguments, "-k", "sum"]) == pytest.ExitCode.OK
        assert "1 passed, 2 deselected" in capsys.readouterr().out
        assert pytest.main([*arguments, "-k", "sum", "--engine-no-cache"]) == pytest.ExitCode.TESTS_FAILED
