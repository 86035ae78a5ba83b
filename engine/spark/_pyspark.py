"""Where PySpark is, without importing it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from engine.errors import SetupError

# As in pyproject.toml.
PYSPARK = "'pyspark~=4.1.3'"


def pyspark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("spark-session", "the package pyspark is not installed", f"Install it: pip install {PYSPARK}")
    return Path(spec.origin).resolve().parent
