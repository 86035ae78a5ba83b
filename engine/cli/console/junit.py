"""JUnit XML, as the readers of CI know it: one test suite, one case for each test."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from engine.cli.console.printing import diagnostic_text
from engine.cli.console.safe_output import plain
from engine.compile import DataTest, Manifest, UnitTest
from engine.errors import ProjectError, UsageError
from engine.events import RunResults, Status, TestFinished
from engine.secrets.scrubber import scrub
from engine.target_folder import write_report

# Characters that XML 1.0 cannot have.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(results: RunResults, manifest: Manifest, path: Path, project: Path) -> None:
    """Write the tests of a run. Raises UsageError: it cannot be written."""
    finished_tests = [r for r in results.results if isinstance(r, TestFinished)]
    suite = ET.Element(
        "testsuite",
        name=_clean(manifest.project),
        timestamp=results.started_at.partition("+")[0],
        tests=str(len(finished_tests)),
        failures=str(sum(r.status is Status.FAIL for r in finished_tests)),
        errors=str(sum(r.status is Status.ERROR for r in finished_tests)),
        skipped=str(sum(r.status is Status.SKIPPED for r in finished_tests)),
        time=f"{results.seconds:.3f}",
    )
    for result in finished_tests:
        _case(suite, result, manifest, results)
    root = ET.Element("testsuites")
    root.append(suite)
    try:
        write_report(path, ET.tostring(root, encoding="utf-8", xml_declaration=True), project)
    except ProjectError as error:
        raise UsageError("usage", error.diagnostic.message, "Add a file name: --junit-xml report.xml") from error


def _case(suite: ET.Element, result: TestFinished, manifest: Manifest, results: RunResults) -> None:
    node = manifest.nodes[result.node]
    if not isinstance(node, DataTest | UnitTest):
        return
    kind = "unit_test" if isinstance(node, UnitTest) else "data_test"
    case = ET.SubElement(
        suite, "testcase", name=_clean(node.name), classname=_clean(f"{kind}.{node.model.partition('.')[2]}"),
        time=f"{result.seconds:.3f}", file=_clean(node.file), line=str(node.location.line if node.location else 1),
    )  # fmt: skip
    if result.cached:
        properties = ET.SubElement(case, "properties")
        for key, value in {"cached": "true", "passed_at": result.passed_at}.items():
            ET.SubElement(properties, "property", name=key, value=value)
    tag = {Status.FAIL: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}.get(result.status)
    if tag is None:
        if result.message:
            ET.SubElement(case, "system-out").text = _clean(result.message)
        return
    name = result.node.partition(".")[2]
    texts = [plain(*diagnostic_text(d)) for d in results.diagnostics if d.node == name]
    ending = ET.SubElement(case, tag, message=_clean(result.message))
    ending.text = _clean("\n".join(texts)) if texts else None


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", scrub(text))
