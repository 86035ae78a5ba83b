"""Where PySpark is, without importing it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from engine.errors import SetupError


def pyspark_home() -> Path:
    """The installed package, which is a whole Spark: jars, scripts and all."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("spark-session", "the package pyspark is not installed", "Install it: pip install headrace")
    return Path(spec.origin).resolve().parent
