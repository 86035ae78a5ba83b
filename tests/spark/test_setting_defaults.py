"""The settings of SQL that Spark has: each is known to change no row, or counts with the default that Spark gives it."""

from __future__ import annotations

import pytest

from engine.compile.config.spark_settings import DEFAULTS, changes_nothing
from tests.lab import LabSession

pytestmark = pytest.mark.spark

# Set by the session, or known to the process only.
_ELSEWHERE = {"spark.sql.session.timeZone", "spark.sql.session.collation.default"}
_UNKNOWN = ("<undefined>", "<value of")


@pytest.mark.nightly
def test_defaults_are_those_of_spark(lab_session: LabSession) -> None:
    jvm = lab_session.spark._jvm
    entries = (
        getattr(jvm, "org.apache.spark.sql.internal.SQLConf$").__getattr__("MODULE$").getConfigEntries().iterator()
    )
    spark: dict[str, str] = {}
    while entries.hasNext():
        entry = entries.next()
        spark[str(entry.key())] = str(entry.defaultValueString())
    assert len(spark) > 600
    counting = {key: text for key, text in spark.items() if not changes_nothing(key)}
    known = {key: text for key, text in counting.items() if not text.startswith(_UNKNOWN)}
    assert {key: text for key, text in known.items() if DEFAULTS.get(key) != text and key not in _ELSEWHERE} == {}
    assert set(DEFAULTS) - set(spark) <= _ELSEWHERE


@pytest.mark.nightly
def test_a_harmless_name_is_one_that_spark_has(lab_session: LabSession) -> None:
    """A list of names that nobody reads would hide a new one that begins so."""
    from engine.compile.config.spark_settings import _SQL

    jvm = lab_session.spark._jvm
    module = getattr(jvm, "org.apache.spark.sql.internal.SQLConf$").__getattr__("MODULE$")
    entries, keys = module.getConfigEntries().iterator(), []
    while entries.hasNext():
        keys.append(str(entries.next().key()))
    unknown = [
        name
        for name in _SQL.split()
        if not name.startswith("iceberg.")
        and not any(
            key == f"spark.sql.{name}" or (name[-1] == "." and key.startswith(f"spark.sql.{name}")) for key in keys
        )
    ]
    assert unknown == []
