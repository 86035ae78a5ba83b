"""`make audit`: what it says of locks when a service answers, knows nothing, or cannot be reached."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.lab import REPOSITORY

pytestmark = pytest.mark.slow

LOCK = """# made by hand
bad-package==1.0 \\
    --hash=sha256:00
    # via headrace
Good.Package[extra]==2.1 ; sys_platform == 'win32' \\
    --hash=sha256:00
Good.Package[extra]==2.0 ; sys_platform != 'win32' \\
    --hash=sha256:00
"""
# pip-audit as far as its answers go: from a file beside it, by service; a service without one cannot be reached.
TOOL = """#!{python}
import json, re, sys
service = sys.argv[sys.argv.index("--vulnerability-service") + 1]
pins = [line.strip().split("==") for line in open(sys.argv[-1])]
assert len({{name for name, _ in pins}}) == len(pins), "each name once"
answers = json.load(open({answers!r})).get(service)
if answers is None:
    sys.exit("ConnectionError: no route to the service")
found = []
for name, version in pins:
    known = answers.get(name)
    found.append({{"name": name, "skip_reason": "not found"}} if known is None else
                 {{"name": name, "version": version, "vulns": known.get(version, [])}})
print(json.dumps({{"dependencies": found, "fixes": []}}))
sys.exit(1 if any(one.get("vulns") for one in found) else 0)
"""
ADVISORY = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1", "GHSA-x"], "fix_versions": ["1.1"]}


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "base.txt").write_text(LOCK)
    return tmp_path / "locks"


def audit(locks: Path, answers: object, *options: str) -> tuple[int, str]:
    tool, known = locks.parent / "pip-audit", locks.parent / "answers.json"
    known.write_text(json.dumps(answers))
    tool.write_text(TOOL.format(python=sys.executable, answers=str(known)))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    script = str(REPOSITORY / "scripts" / "audit.py")
    done = subprocess.run(
        [sys.executable, script, "--locks", str(locks), "--tool", str(tool), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def test_a_vulnerable_package_is_named_with_its_lock_and_the_fix(locks: Path) -> None:
    code, said = audit(locks, {"pypi": {"bad-package": {"1.0": [ADVISORY]}, "good-package": {}}})
    assert code == 1
    assert "VULNERABLE: bad-package 1.0 in base: PYSEC-2026-1 CVE-2026-1 (fixed in 1.1)" in said
    assert "3 of 3 locked packages checked" in said
    assert "NOT CHECKED" not in said


def test_the_version_of_another_platform_is_asked_about_too(locks: Path) -> None:
    code, said = audit(locks, {"pypi": {"bad-package": {}, "good-package": {"2.1": [ADVISORY]}}})
    assert (code, said.count("VULNERABLE")) == (1, 1)
    assert "VULNERABLE: good-package 2.1 in base" in said


def test_packages_without_advisories_are_good(locks: Path) -> None:
    code, said = audit(locks, {"pypi": {"bad-package": {}, "good-package": {}}})
    assert code == 0
    assert "3 of 3 locked packages checked" in said


def test_the_second_service_is_asked_about_what_the_first_does_not_know(locks: Path) -> None:
    code, said = audit(locks, {"pypi": {"good-package": {}}, "osv": {"bad-package": {"1.0": [ADVISORY]}}})
    assert code == 1
    assert "3 of 3 locked packages checked" in said


@pytest.mark.parametrize(("options", "expected"), [((), 3), (("--lenient",), 0)])
@pytest.mark.parametrize("answers", [{}, {"pypi": {}}], ids=["no service", "a service that knows no package"])
def test_what_was_not_checked_is_never_called_good(
    locks: Path, answers: object, options: tuple[str, ...], expected: int
) -> None:
    code, said = audit(locks, answers, *options)
    assert code == expected
    assert "0 of 3 locked packages checked" in said
    assert "NOT CHECKED: all 3 packages" in said


def test_a_part_that_was_not_checked_is_named(locks: Path) -> None:
    code, said = audit(locks, {"pypi": {"good-package": {}}})
    assert code == 3
    assert "NOT CHECKED: 1 (bad-package, ..)" in said


RECORD = """id: PYSEC-2026-7
aliases: [CVE-2026-7]
modified: '2026-02-03T04:05:06Z'
affected:
- package: {name: Bad_Package, ecosystem: PyPI}
  ranges: [{type: ECOSYSTEM, events: [{introduced: '0.9'}, {fixed: '1.0.1'}]}]
- package: {name: good.package, ecosystem: PyPI}
  ranges: [{type: ECOSYSTEM, events: [{introduced: '0'}, {fixed: '2.0'}]}]
"""


def test_a_copy_of_a_database_is_asked_where_no_service_answers(locks: Path) -> None:
    folder = locks.parent / "database" / "vulns" / "bad-package"
    folder.mkdir(parents=True)
    (folder / "PYSEC-2026-7.yaml").write_text(RECORD)
    listed = {
        "id": "X-1",
        "modified": "2026-01-01",
        "affected": [{"package": {"name": "good-package", "ecosystem": "PyPI"}, "versions": ["2.1"]}],
    }
    gone = {**listed, "id": "X-2", "withdrawn": "2026-01-02"}
    (folder / "X-1.json").write_text(json.dumps(listed))
    (folder / "X-2.json").write_text(json.dumps(gone))
    code, said = audit(locks, {}, "--database", str(locks.parent / "database"))
    assert code == 1
    assert "VULNERABLE: bad-package 1.0 in base: PYSEC-2026-7 CVE-2026-7 (fixed in 1.0.1)" in said
    assert "VULNERABLE: good-package 2.1 in base: X-1 (fixed in no version)" in said
    assert said.count("VULNERABLE") == 2
    assert "newest advisory is of 2026-02-03" in said
    assert "3 of 3 locked packages checked" in said


@pytest.mark.parametrize(
    ("days", "options", "code"), [(20, (), 0), (31, (), 3), (31, ("--lenient",), 0)], ids=["new", "old", "old, lenient"]
)
def test_an_old_copy_of_a_database_is_no_audit(locks: Path, days: int, options: tuple[str, ...], code: int) -> None:
    (locks.parent / "database").mkdir()
    day = datetime.now(UTC) - timedelta(days=days)
    record = {"id": "X-1", "modified": day.isoformat(), "affected": []}
    (locks.parent / "database" / "X-1.json").write_text(json.dumps(record))
    ended, said = audit(locks, {}, "--database", str(locks.parent / "database"), *options)
    assert ended == code
    assert (f"OUTDATED: the newest advisory is {days} days old" in said) == (days > 30)


def test_a_folder_without_advisories_is_no_audit(locks: Path) -> None:
    (locks.parent / "database").mkdir()
    code, said = audit(locks, {}, "--database", str(locks.parent / "database"))
    assert code == 3
    assert "NOT CHECKED: all 3 packages: the database has no advisory" in said


def test_each_lock_of_the_project_is_read() -> None:
    sys.path.insert(0, str(REPOSITORY / "scripts"))
    try:
        from audit import locked  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    pins = locked(REPOSITORY / "requirements")
    assert {lock for locks in pins.values() for lock in locks} == {
        p.stem for p in (REPOSITORY / "requirements").glob("*.txt")
    }
    text = "".join(p.read_text() for p in (REPOSITORY / "requirements").glob("*.txt"))
    assert sum(map(len, pins.values())) == sum("==" in line and not line.startswith(" ") for line in text.splitlines())
