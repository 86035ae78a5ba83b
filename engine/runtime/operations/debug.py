"""`engine debug`: can this machine build into this target? One finding a part, with a fix."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from engine import __version__
from engine.addresses import is_open
from engine.compile import DataTest, Manifest, Model, Target
from engine.errors import EngineError
from engine.lake.catalog.catalog_settings import catalog_jars, is_local, warehouse
from engine.lake.catalog.moved_lake import check as lake_check
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.lake.clients.catalog_client import client
from engine.lake.clients.catalog_errors import address
from engine.plan.deployed.state_folder import state_root
from engine.runtime.context.run_context import CORE, jar_sets, state_jars
from engine.runtime.lifecycle.orphaned_tables import orphans
from engine.sources.connection import reach, read_connection
from engine.sources.registry import Registry, read_settings
from engine.sources.spec import reader_options
from engine.spark import archive, archive_writer
from engine.spark.jars import JarState, status
from engine.spark.java import Java, find_java
from engine.state.lease import leased
from engine.state.state_path import store_of

_REGISTRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    part: str
    good: bool
    text: str
    remedy: str = ""


def checkup(target: Target, root: Path, manifest: Manifest | None = None) -> Iterator[Finding]:
    """Check each part; nothing is started and nothing is fetched. `manifest`: to look for tables that no model has."""
    yield from machine(target.master, target.driver_memory, _needed(target, manifest))
    yield _catalog(target)
    yield _state(target, root, manifest)
    yield from (_connection(target, name, root) for name in target.connections)
    yield from (_registry(target, name, root) for name in target.registries)
    yield Finding("project", True, f"{root}, target {target.name}, schema {target.schema}")


def _needed(target: Target, manifest: Manifest | None) -> frozenset[str]:
    nodes = manifest.nodes.values() if manifest is not None else ()
    readers = [node for node in nodes if isinstance(node, Model | DataTest)]
    sets = jar_sets(manifest, readers) if manifest is not None else CORE
    return frozenset(name for name, _, _ in status((*sets, *catalog_jars(target.catalog), *state_jars(target))))


def machine(
    master: str | None = None, memory: str | None = None, needed_jars: frozenset[str] | None = None
) -> Iterator[Finding]:
    """Check what does not depend on a project; `needed_jars`: coordinates of jars; None: those of every project."""
    if needed_jars is None:
        needed_jars = frozenset(name for name, _, _ in status(CORE))
    spark, iceberg = metadata.version("pyspark"), metadata.version("pyiceberg")
    yield Finding("engine", True, f"headrace {__version__}, Python {platform.python_version()}")
    where = f", master {master}" if master else ""
    yield Finding("spark", True, f"PySpark {spark}, PyIceberg {iceberg}{where}")
    try:
        java = find_java()
    except EngineError as error:
        yield Finding("java", False, error.diagnostic.message, error.diagnostic.hint)
        yield from _jars(needed_jars)
        return
    yield Finding("java", True, f"Java {java.version_text} from {java.origin} ({java.path})")
    yield from _jars(needed_jars)
    yield _classes(java, memory or "")


def _classes(java: Java, memory: str) -> Finding:
    """The archive of Java's classes; a machine without one is as good, and slower."""
    folder = archive.archive_folder()
    if folder is None:
        return Finding("classes", True, "no class archive: there is no cache folder that only you can write to")
    classes = archive.Classes(java, tuple(jar for _, jar, _ in status(("core",))), archive.is_wide(memory))
    path = archive.archive_path(classes)
    if path is not None:
        return Finding("classes", True, f"class archive {path} ({path.stat().st_size / 1e6:.0f} MB)")
    failure = archive_writer.last_failure(classes)
    text = f"no class archive in {folder}{f': {failure}' if failure else ''}"
    return Finding(
        "classes", True, text, "Run 'engine warmup', or let the next session write it in the background when it ends."
    )


def _jars(needed_jars: frozenset[str]) -> Iterator[Finding]:
    unneeded = 0
    for coordinates, path, state in status():
        if state is JarState.MISSING and coordinates not in needed_jars:
            unneeded += 1
            continue
        if state is JarState.MISSING:
            text = f"{coordinates}: will be downloaded by the first build"
            yield Finding("jars", True, text, "Run 'engine jars fetch' to download it now.")
            continue
        good = state is JarState.READY
        remedy = "" if good else f"Delete {path} and run 'engine jars fetch'."
        yield Finding("jars", good, f"{coordinates}: {state.value}", remedy)
    if unneeded:
        text = f"{unneeded} more, of other sources and catalogs, are not downloaded and not needed here"
        yield Finding("jars", True, text)


def _catalog(target: Target) -> Finding:
    try:
        lake_check(target.catalog)
        if isinstance(files := warehouse(target.catalog), ObjectWarehouse):
            files.check()
    except EngineError as error:
        return Finding("catalog", False, error.diagnostic.message, error.diagnostic.hint)
    if not is_local(target.catalog):
        return _server(target)
    if not _writable(target.catalog.path):
        return Finding("catalog", False, f"{target.catalog.path} cannot be written", "Make the folder writable.")
    return Finding("catalog", True, f"{target.catalog.type} '{target.catalog.name}' in {target.catalog.path}")


def _server(target: Target) -> Finding:
    try:
        count = len(client(target.catalog).names(target.schema))
    except EngineError as error:
        return Finding("catalog", False, error.diagnostic.message, error.diagnostic.hint)
    text = (
        f"{target.catalog.type} '{target.catalog.name}' at {address(target.catalog)}, {count} tables in {target.schema}"
    )
    return Finding("catalog", True, text)


def _state(target: Target, root: Path, manifest: Manifest | None) -> Finding:
    if isinstance(target.state, Path) and not _writable(target.state):
        return Finding("state", False, f"{target.state} cannot be written", "Make the folder writable.")
    if not isinstance(target.state, Path):
        try:
            # Which writes, reads and removes, and finds out whether the store can keep a lock.
            with leased(store_of(state_root(target)), target.state, ()):
                pass
        except EngineError as error:
            return Finding("state", False, error.diagnostic.message, error.diagnostic.hint)
    # Of a project with errors not every model is known.
    orphaned = orphans(manifest, target, root) if manifest is not None and not manifest.errors else ()
    if not orphaned:
        return Finding("state", True, str(target.state))
    text = f"{target.state}, with {len(orphaned)} table{'s' if len(orphaned) > 1 else ''} without a model"
    return Finding("state", True, text, "List them: engine ls --orphans")


def _connection(target: Target, name: str, root: Path) -> Finding:
    try:
        settings = target.place(root).connection(name)
        if "options" in settings and not set(settings) & {"bootstrap_servers", "security"}:
            options = ", ".join(sorted(reader_options(name, settings))) or "none"
            return Finding("connection", True, f"'{name}' has options for Spark's readers: {options}")
        connection = read_connection(name, settings)
        reach(connection)
    except EngineError as error:
        return Finding("connection", False, error.diagnostic.message, error.diagnostic.hint)
    return Finding("connection", True, f"'{name}' at {connection.addresses}: a broker accepts connections")


def _registry(target: Target, name: str, root: Path) -> Finding:
    try:
        settings = replace(read_settings(name, target.place(root).registry(name)), patience=_REGISTRY_SECONDS)
        Registry(settings).check()
    except EngineError as error:
        return Finding("registry", False, error.diagnostic.message, error.diagnostic.hint)
    is_unencrypted = bool(settings.authorization) and is_open(settings.url)
    hint = "Its credentials are sent unencrypted, over plain http: use an https address." if is_unencrypted else ""
    return Finding("registry", True, f"'{name}' at {settings.url}", hint)


def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or the folder itself; nothing is made: its path is the project's word."""
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
