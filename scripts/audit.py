"""Are locked packages known to be vulnerable? Asks advisory services by pip-audit; called by `make audit`.

Every package of requirements/*.txt is asked about, for all platforms. Exit codes: 0 nothing is known, 1 a package is
vulnerable, 3 with --strict if not every package could be checked. Without a network nothing is checked; the last line
says so, and the exit code is 0 unless --strict is given.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The second is asked about what the first does not know.
SERVICES = ("pypi", "osv")
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([\w.!+]+)", re.MULTILINE)
_NAME = re.compile(r"[-_.]+")

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
    parser.add_argument("--strict", action="store_true", help="fail with 3 if a package could not be checked")
    parser.add_argument("--locks", type=Path, default=ROOT / "requirements", help="folder of locks")
    parser.add_argument("--tool", default="", help="the command of pip-audit; its module in this Python if left out")
    chosen = parser.parse_args(arguments)
    pins = locked(chosen.locks)
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
        print(f"NOT CHECKED: {which}: no advisory service answered")
    if report.advisories:
        return 1
    return 3 if report.unchecked and chosen.strict else 0


if __name__ == "__main__":
    sys.exit(main())
