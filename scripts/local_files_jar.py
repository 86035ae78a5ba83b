"""Compile the sources in engine/spark/local_files into the jar beside them: `python scripts/local_files_jar.py`.

Needs a JDK 17 or newer (javac on the path) and pyspark. The same sources and compiler give the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pyspark

from engine.spark.local_files import JAR, SOURCES

# The oldest Java that the engine runs on.
RELEASE = "17"
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def compiler() -> str:
    """Version of the javac on the path; empty: there is none."""
    try:
        said = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.removeprefix("javac").strip()


def manifest() -> str:
    """Describe the jar: of which source and compiler it is."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()
    # A line of a manifest has at most 72 bytes.
    source = f"Source-Files: {' '.join(source.name for source in SOURCES)}\nSource-Sha: {digest[:48]}"
    return f"Manifest-Version: 1.0\nBuilt-By-Compiler: {compiler()}\n{source}\n\n"


def compiled() -> dict[str, bytes]:
    """Compile the sources: class files by their names in the jar."""
    (hadoop,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--release", RELEASE, "-g:source,lines", "-Xlint:-classfile", "-nowarn", "-proc:none"]
        subprocess.run(["javac", *arguments, "-cp", str(hadoop), "-d", folder, *map(str, SOURCES)], check=True)
        found = sorted(Path(folder).rglob("*.class"))
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def main() -> None:
    """Write the jar."""
    files = {"META-INF/MANIFEST.MF": manifest().encode(), **compiled()}
    with zipfile.ZipFile(JAR, "w") as jar:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.external_attr = 0o644 << 16
            jar.writestr(entry, content)
    sizes = ", ".join(re.sub(r".*/", "", name) + f" {len(content)}" for name, content in files.items())
    print(f"{JAR}: {sizes}")


if __name__ == "__main__":
    main()
