"""Tools that start Spark, each only if the command line allows it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.api import Project
from engine.compile import UnitTest
from engine.errors import ProjectError, UsageError, near
from engine.events import ModelFinished
from engine.mcp.read_tools import finding_records, render_answer


def run_unit_test(project: Project, name: str) -> str:
    """Run one unit test, which reads and writes no table; raise UsageError if there is no such test."""
    compiled = project.compile()
    if compiled.manifest.errors:
        raise ProjectError.from_diagnostics(compiled.manifest.errors)
    tests = {test.name: test for test in compiled.manifest.unit_tests} | {
        test.id: test for test in compiled.manifest.unit_tests
    }
    test = tests.get(name)
    if not isinstance(test, UnitTest):
        raise UsageError("usage", f"unit test '{name}' not found", near(name, tests))
    with project.verdicts(compiled, [test.id]) as run:
        verdict = run(test)
    record = {
        "test": test.id,
        "status": verdict.status.value,
        "message": verdict.message,
        "passed_at": verdict.passed_at,
        "findings": finding_records(verdict.findings),
    }
    return render_answer(record, "findings")


def build(project: Project, select: list[str]) -> str:
    """Build models and run their tests; errors are those of `Project.build`."""
    results = project.build(select)
    return render_answer(
        {
            "failed": results.failed,
            "seconds": results.seconds,
            "results": [_result(one) for one in results.results],
            "findings": finding_records(results.diagnostics),
        },
        "results",
    )


def _result(one: Any) -> dict[str, Any]:
    record_keys = (
        ("node", "status", "relation") if isinstance(one, ModelFinished) else ("node", "status", "failures", "message")
    )
    values = asdict(one)
    numbers = {key: value for key, value in values.items() if isinstance(value, int) and key not in {"index", "total"}}
    return {key: values[key] for key in record_keys if key in values} | numbers
