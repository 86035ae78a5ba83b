"""The `spark:` block of a target: where Spark runs, and its settings."""

from __future__ import annotations

from typing import Any, Final

from engine.compile.config.session_settings import TIME_ZONE, WAP, WAP_HINT, WAP_MESSAGE, is_utc
from engine.project.yaml_section import Section
from engine.schema.target_keys import SPARK
from engine.spark_master import MasterKind, kind_of
from engine.spark_options import pinned

# Settings that Spark hands to executors as arguments of their processes, which everybody on their machines can list.
_ARGUMENTS: Final = (
    "spark.executor.extra", "spark.executor.default", "spark.auth", "spark.rpc", "spark.network", "spark.ssl",
)  # fmt: skip
# Of these the ones that it hands over otherwise.
_APART: Final = ("spark.authenticate.secret", "password")
_CONNECT: Final = (
    "Spark Connect (sc://) is not supported: micro-batches are committed by the process that holds the locks of the "
    "tables, and a Connect server would run them in another one"
)
_CONNECT_HINT: Final = (
    "Name the cluster's own master (spark://<host>:7077); compile, plan, docs and show --table need none."
)
_DATABRICKS: Final = (
    "Databricks is not supported: its clusters start the driver themselves, with other versions of Spark and "
    "Iceberg than Headrace supports"
)
_DATABRICKS_HINT: Final = (
    "Use a cluster of Apache Spark 4.1; its tables can be in Unity Catalog, as {type: rest}. compile, plan, docs and "
    "show --table need no Spark."
)
_ELSEWHERE: Final = {
    MasterKind.CONNECT: (_CONNECT, _CONNECT_HINT),
    MasterKind.DATABRICKS: (_DATABRICKS, _DATABRICKS_HINT),
}


def is_argument(key: str) -> bool:
    lower = key.lower()
    return lower.startswith(_ARGUMENTS) and not lower.endswith(_APART)


def read_spark(part: Section | None) -> dict[str, Any]:
    """Return the fields of a target that the block gives; what is wrong is a finding."""
    if part is None:
        return {}
    part.check_keys(SPARK)
    result: dict[str, Any] = {}
    master, memory, conf, shared = (part.child(key) for key in ("master", "driver_memory", "conf", "shared_folders"))
    if master:
        result["master"] = _master(master)
    if memory:
        result["driver_memory"] = memory.text()
    if shared:
        result["shared_folders"] = shared.boolean()
    if conf:
        result["conf"] = {key: value.option() for key, value in conf.mapping()}
        for key, value in conf.mapping():
            _check_setting(key, value)
    return result


def _master(part: Section) -> str:
    text = part.text()
    kind = kind_of(text)
    if kind in _ELSEWHERE:
        message, hint = _ELSEWHERE[kind]
        part.report("not-supported", message, hint)
    elif text and kind is MasterKind.UNKNOWN:
        hint = "Write local[*], spark://<host>:7077, yarn or k8s://https://<host>:<port>."
        part.report("bad-value", f"'{text}' is not a Spark master", hint)
    return text


def _check_setting(key: str, value: Section) -> None:
    if key.lower().startswith(WAP):
        value.report("setting-wap", WAP_MESSAGE.format(f"the setting '{key}'"), WAP_HINT, at_key=True)
    if key.lower() == TIME_ZONE.lower() and not is_utc(value.option()):
        hint = (
            "Remove it. To parse strings without a zone set 'timezone:' of the source; for local days and "
            f"hours write from_utc_timestamp(ts, '{value.option()}')."
        )
        value.report("setting-pinned", f"the session's time zone is UTC, not {value.option()}", hint)
    fixed = pinned(key)
    if fixed and value.option().strip().lower() != fixed[1]:
        message = f"the setting '{fixed[0]}' must be {fixed[1]}, not {value.option()}"
        value.report("setting-pinned", message, "Remove it; the SQL of a project is checked for this value.")
