"""What PySpark loads for a session."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
from engine.spark.session import _load_without_pandas
_load_without_pandas()
from pyspark.testing import utils
print("pandas" in sys.modules, utils.have_numpy)
import pandas
print(pandas.DataFrame({"a": [1]}).shape)
"""


def test_pandas_is_not_loaded_and_can_be() -> None:
    ran = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["False True", "(1, 1)"]
