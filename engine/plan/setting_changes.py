"""Settings that change what a query means: those of the rows that are there against those of now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.compile import Model
from engine.compile.config.session_settings import FROZEN
from engine.spark_options import PINNED

_PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PROVIDERS = {"RocksDBStateStoreProvider": "rocksdb", "HDFSBackedStateStoreProvider": "hdfs"}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What changed: sentences on what other rows come from, and on what has no effect on existing state."""
    changed, frozen = [], []
    confs = old.get("conf", {}), new.get("conf", {})
    for key in sorted({*confs[0], *confs[1]}):
        values = [conf.get(key, "its default") for conf in confs]
        # What is pinned has one value, whether a target repeats it or not.
        if values[0] == values[1] or key in PINNED:
            continue
        if key == FROZEN:
            frozen.append(f"the setting '{key}' changed; the checkpoint keeps its first value")
        else:
            changed.append(f"the setting '{key}' changed from {values[0]} to {values[1]}")
    if old.get("pre_hook", []) != new.get("pre_hook", []):
        was, now = ("; ".join(settings.get("pre_hook", [])) or "nothing" for settings in (old, new))
        changed.append(f"'pre_hook' changed from {was} to {now}")
    return changed, frozen


def state_store_notes(model: Model, frozen: Mapping[str, str]) -> tuple[str, ...]:
    """Return what `state_store` says that the checkpoint does not follow (Spark class OffsetSeqMetadata)."""
    if not model.stateful:
        return ()
    declared = {"partitions": model.state_partitions, "provider": model.operation.state_provider}
    provider = frozen.get(_PROVIDER, "").rpartition(".")[2]
    in_checkpoint = {"partitions": frozen.get(_PARTITIONS), "provider": _PROVIDERS.get(provider)}
    return tuple(
        f"state_store.{key} is {value} now, but the checkpoint keeps {in_checkpoint[key]}; to apply it: "
        f"engine build -f -s {model.name}"
        for key, value in declared.items()
        if value is not None and in_checkpoint[key] not in {None, str(value)}
    )
