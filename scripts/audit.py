"""Are locked packages known to be vulnerable? Asks advisory services by pip-audit; called by `make audit`.

Every package of requirements/*.txt is asked about, for all platforms. Exit codes: 0 every package was checked and
nothing is known, 1 a package is vulnerable, 3 not every package could be checked, which the last line says (0 with
--lenient). Without a network --database names a copy of an advisory database: of pypa/advisory-database on GitHub, or
a folder of OSV's JSON files. What it knows is as old as its newest advisory: one of more than a month is no audit.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The second is asked about what the first does not know.
SERVICES = ("pypi", "osv")
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([\w.!+]+)", re.MULTILINE)
_READERS = {".json", ".yaml", ".yml"}
_NAME = re.compile(r"[-_.]+")
# Days. The database of PyPA gets new advisories several times a week.
_OLD = 30

Pin = tuple[str, str]


@dataclass(slots=True)
class Report:
    """What the services know: advisories by package and version, and the packages that nobody was asked about."""

    advisories: dict[Pin, list[str]] = field(default_factory=dict)
    unchecked: set[Pin] = field(default_factory=set)


def locked(folder: Path) -> dict[Pin, list[str]]:
    """Each locked package and version with the names of the locks that have it."""
    pins: dict[Pin, list[str]] = {}
    for path in sorted(folder.glob("*.txt")):
        for name, version in _PIN.findall(path.read_text(encoding="utf-8")):
            pins.setdefault((_NAME.sub("-", name).lower(), version), []).append(path.stem)
    return pins


def audited(pins: Iterable[Pin], tool: Sequence[str]) -> Report:
    """Ask the services about packages.

    Args:
        pins: names and versions.
        tool: the command of pip-audit.
    """
    report = Report(unchecked=set(pins))
    for service in SERVICES:
        for some in _rounds(report.unchecked):
            for dependency in _ask(some, service, tool):
                pin = (_NAME.sub("-", dependency["name"]).lower(), dependency.get("version", ""))
                if "skip_reason" not in dependency and pin in report.unchecked:
                    report.unchecked.discard(pin)
                    if dependency["vulns"]:
                        report.advisories[pin] = [_advisory(found) for found in dependency["vulns"]]
    return report


def looked_up(pins: Iterable[Pin], database: Path) -> tuple[Report, str]:
    """Look packages up in a copy of an advisory database.

    Args:
        pins: names and versions.
        database: folder of OSV's records as YAML or JSON, at any depth.

    Returns:
        What it knows, and the day of its newest record; everything is unchecked if there is no record.
    """
    wanted: dict[str, list[Pin]] = {}
    for pin in pins:
        wanted.setdefault(pin[0], []).append(pin)
    report, newest = Report(), ""
    for path in sorted(path for path in database.rglob("*") if path.suffix in _READERS):
        record = _record(path)
        newest = max(newest, str(record.get("modified", ""))[:10])
        for affected in () if record.get("withdrawn") else record.get("affected", ()):
            package = affected.get("package", {})
            if package.get("ecosystem") != "PyPI":
                continue
            for pin in wanted.get(_NAME.sub("-", package["name"]).lower(), ()):
                fixed = _fixed(affected, pin[1])
                if fixed is not None:
                    known = {"id": record["id"], "aliases": record.get("aliases", ()), "fix_versions": fixed}
                    report.advisories.setdefault(pin, []).append(_advisory(known))
    if not newest:
        report.unchecked = set(pins)
    return report, newest


def _record(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        found: Any = json.loads(text)
    else:
        import yaml

        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    return found if isinstance(found, dict) else {}


def _fixed(affected: Mapping[str, Any], version: str) -> list[str] | None:
    """The versions that fix what affects a version; None if it is not affected (OSV schema, "affected[].ranges")."""
    from packaging.version import InvalidVersion, Version

    fixes: list[str] = []
    hit = version in map(str, affected.get("versions", ()))
    try:
        ours = Version(version)
        for events in (r.get("events", ()) for r in affected.get("ranges", ()) if r.get("type") == "ECOSYSTEM"):
            inside = False
            for event in events:
                ((kind, value),) = event.items()
                at = Version("0" if str(value) == "0" else str(value))
                if kind == "introduced" and ours >= at:
                    inside = True
                elif (kind == "fixed" and ours >= at) or (kind == "last_affected" and ours > at):
                    inside = False
                fixes += [str(value)] if kind == "fixed" and ours < at else []
            hit = hit or inside
    except InvalidVersion:
        pass
    return fixes if hit else None


def _rounds(pins: Iterable[Pin]) -> list[dict[str, str]]:
    """Packages that one run of pip-audit takes: each name once; a lock may have a version for each platform."""
    rounds: list[dict[str, str]] = []
    for name, version in sorted(pins):
        free = next((some for some in rounds if name not in some), None)
        if free is None:
            rounds.append(free := {})
        free[name] = version
    return rounds


def _ask(pins: Mapping[str, str], service: str, tool: Sequence[str]) -> list[dict[str, Any]]:
    """What a service says of packages; nothing if it cannot be reached."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()), encoding="utf-8")
        options = ["--disable-pip", "--no-deps", "--progress-spinner", "off", "--format", "json", "--timeout", "30"]
        command = [*tool, *options, "--vulnerability-service", service, "--requirement", str(requirements)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        print(f"{service}: {last[:120]}", file=sys.stderr)
        return []
    return found


def _advisory(found: Mapping[str, Any]) -> str:
    names = [found["id"], *(alias for alias in found.get("aliases", ()) if alias.startswith("CVE-"))]
    fixed = ", ".join(found.get("fix_versions") or ()) or "no version"
    return f"{' '.join(names)} (fixed in {fixed})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is known, and return the exit code."""
    parser = argparse.ArgumentParser(description="Are locked packages known to be vulnerable?")
    parser.add_argument("--lenient", action="store_true", help="end with 0 although packages could not be checked")
    parser.add_argument("--database", type=Path, help="a copy of an advisory database, in place of the services")
    parser.add_argument("--locks", type=Path, default=ROOT / "requirements", help="folder of locks")
    parser.add_argument("--tool", default="", help="the command of pip-audit; its module in this Python if left out")
    chosen = parser.parse_args(arguments)
    pins, age = locked(chosen.locks), 0
    if chosen.database:
        report, newest = looked_up(pins, chosen.database)
        print(f"checked against {chosen.database}, whose newest advisory is of {newest or 'no day: it has none'}")
        age = _age(newest)
    else:
        report = audited(pins, [chosen.tool] if chosen.tool else [sys.executable, "-m", "pip_audit"])
    for name, version in sorted(report.advisories):
        for advisory in report.advisories[name, version]:
            print(f"VULNERABLE: {name} {version} in {', '.join(pins[name, version])}: {advisory}")
    print(f"{len(pins) - len(report.unchecked)} of {len(pins)} locked packages checked")
    jars = json.loads((ROOT / "engine" / "spark" / "jars.json").read_text(encoding="utf-8"))
    print(
        f"not checked: the jars of engine/spark/jars.json ({', '.join(sorted(jars))}): no service is asked about them"
    )
    if report.unchecked:
        some = ", ".join(name for name, _ in sorted(report.unchecked)[:5])
        which = (
            f"all {len(pins)} packages"
            if len(report.unchecked) == len(pins)
            else f"{len(report.unchecked)} ({some}, ..)"
        )
        reason = "the database has no advisory" if chosen.database else "no advisory service answered"
        print(f"NOT CHECKED: {which}: {reason}; this was no audit of them")
    if age > _OLD:
        print(f"OUTDATED: the newest advisory is {age} days old; this was no audit of what was found since then")
    if report.advisories:
        return 1
    return 3 if (report.unchecked or age > _OLD) and not chosen.lenient else 0


def _age(day: str) -> int:
    """Days since a day; 0 if it is not one."""
    try:
        return (datetime.now(UTC).date() - date.fromisoformat(day)).days
    except ValueError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
