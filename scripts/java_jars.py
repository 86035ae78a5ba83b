"""Compile the Java sources below engine/spark into the jars beside them: `python scripts/java_jars.py`.

Needs a JDK 17 or newer (javac on the path) and pyspark. The same sources and compiler give the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyspark

from engine.spark import checkpoint_files, local_files, record_readers
from engine.spark.jars import jar_paths

# Each jar and what it is made from.
JARS = {package.JAR: package.SOURCES for package in (checkpoint_files, local_files, record_readers)}
# The oldest Java that the engine runs on.
RELEASE = "17"
# So many names fit into one line.
FEW = 2
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def compiler() -> str:
    """Version of the javac on the path; empty: there is none."""
    try:
        said = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.removeprefix("javac").strip()


def manifest(sources: Sequence[Path]) -> str:
    """Describe a jar: of which source and compiler it is."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    # A line of a manifest has at most 72 bytes; one that begins with a blank continues the line before.
    names = "\n  ".join(source.name for source in sources) if len(sources) > FEW else " ".join(s.name for s in sources)
    return (
        f"Manifest-Version: 1.0\nBuilt-By-Compiler: {compiler()}\nSource-Files: {names}\nSource-Sha: {digest[:48]}\n\n"
    )


def compiled(sources: Sequence[Path]) -> dict[str, bytes]:
    """Compile sources: class files by their names in the jar."""
    jars = [*sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")), *jar_paths(["s3"], fetch=True, java=None)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--release", RELEASE, "-g:source,lines", "-Xlint:-classfile", "-nowarn", "-proc:none"]
        class_path = os.pathsep.join(map(str, jars))
        subprocess.run(["javac", *arguments, "-cp", class_path, "-d", folder, *map(str, sources)], check=True)
        found = sorted(Path(folder).rglob("*.class"))
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def main() -> None:
    """Write the jars."""
    for path, sources in JARS.items():
        files = {"META-INF/MANIFEST.MF": manifest(sources).encode(), **compiled(sources)}
        with zipfile.ZipFile(path, "w") as jar:
            for name, content in files.items():
                entry = zipfile.ZipInfo(name, LONG_AGO)
                entry.external_attr = 0o644 << 16
                jar.writestr(entry, content)
        sizes = ", ".join(re.sub(r".*/", "", name) + f" {len(content)}" for name, content in files.items())
        print(f"{path}: {sizes}")


if __name__ == "__main__":
    main()
