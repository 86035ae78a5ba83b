"""`engine debug --show-spark-conf`: all that a target gives to Spark, without starting it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.compile import DataTest, Manifest, Model, Target
from engine.lake.catalog import catalog_settings
from engine.runtime.build import target_conf
from engine.runtime.context.needed_jars import jar_sets
from engine.runtime.context.remote_state import state_jars
from engine.secrets import MASK, names_secret_setting, scrub
from engine.spark._command import driver_conf
from engine.spark.jars import status
from engine.spark.java import NO_JAVA
from engine.spark.session import SessionSettings, session_conf


def masked(target: Target) -> Target:
    if target.secrets is None:
        return target
    secrets = target.secrets.masking()
    s3 = replace(target.s3, secrets=secrets) if target.s3 is not None else None
    store = s3 if target.catalog.store is not None else None
    return replace(target, secrets=secrets, catalog=replace(target.catalog, secrets=secrets, store=store), s3=s3)


def shown_conf(target: Target, target_dir: Path, manifest: Manifest) -> dict[str, str]:
    """Return the settings of the session of a build of the whole project, secrets masked, in the order of their names.

    What is known only when it starts is not among them: Java's temporary folder, and the partitions of a cluster.
    """
    conf = driver_conf(session_conf(submitted_settings(masked(target), target_dir, manifest)), None, "warn")
    hidden = {key: MASK if names_secret_setting(key) and value else scrub(value) for key, value in conf.items()}
    return dict(sorted(hidden.items()))


def submitted_settings(target: Target, target_dir: Path, manifest: Manifest) -> SessionSettings:
    """Return the settings of a session that another process starts; its jars may not have been fetched."""
    read = [node for node in manifest.nodes.values() if isinstance(node, Model | DataTest)]
    sets = (*jar_sets(manifest, read), *catalog_settings.catalog_jars(target.catalog), *state_jars(target))
    jars = tuple(dict.fromkeys(path for _, path, _ in status(sets)))
    return SessionSettings(NO_JAVA, target_dir / "logs", jars, target.master, conf=target_conf(target))
