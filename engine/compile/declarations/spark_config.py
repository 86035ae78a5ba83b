"""The `spark:` block of a target: where Spark runs, and what its executors must be able to reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.compile.config.session_settings import TIME_ZONE, WAP, WAP_HINT, WAP_MESSAGE, is_utc
from engine.compile.declarations.catalog_config import SQLITE, Catalog
from engine.errors import Diagnostic
from engine.pinned_settings import pinned
from engine.project.yaml_section import Section
from engine.schema.target_keys import SPARK
from engine.spark_master import MasterKind, kind_of

SHARED_HINT: Final = (
    "Use an object store or HDFS; or, if that folder is the same one at the same path on every machine of the cluster, "
    "set 'spark: {shared_folders: true}' in the target."
)
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
    "Databricks is not supported: its clusters start the driver themselves, with a Spark and an Iceberg that are not "
    "those of this version"
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
    """Whether the value of a Spark setting can be among the arguments of an executor's process."""
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
    """The master, which is one that a build can start a session with."""
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


def check_folders(section: Section, catalog: Catalog, state: str, master: str) -> None:
    """Report folders of the driver's machine that executors of a cluster would have to write to.

    Each executor would write to the folder of that name on its own disk: rows and state that nobody finds again.

    Args:
        section: of a target whose executors may be elsewhere.
        catalog: of the target.
        state: where the target has its state.
        master: of the cluster.
    """
    local = list(_local_folders(catalog, state))
    if local:
        spark = section.child("spark")
        place = (spark.child("master") if spark else None) or section
        are = "are in folders" if len(local) > 1 else "is in a folder"
        message = f"{' and '.join(local)} {are} of this machine, and executors of {master} run on others"
        place.found.append(Diagnostic("folder-not-shared", message, SHARED_HINT, node=place.node, location=place.place))


def _local_folders(catalog: Catalog, state: str) -> Iterator[str]:
    if not catalog.objects and (catalog.type == SQLITE or _local_warehouse(catalog.keys)):
        yield "the warehouse"
    if is_folder_here(state):
        yield "the state"


def _local_warehouse(keys: Mapping[str, str]) -> bool:
    # A REST server has names for warehouses, too.
    return keys.get("warehouse", "").startswith(("/", "file:", ".", "~"))


def is_folder_here(path: str) -> bool:
    """Whether a path or URI is one of the machine that reads it."""
    return "://" not in path or path.startswith("file:")
