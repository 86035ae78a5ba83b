"""`engine submit`: a command of the engine as an application of spark-submit, with the project and its jars.

`engine debug --show-spark-conf`: all that a target gives to Spark, without starting it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

import engine
from engine.compile import DataTest, Manifest, Model, Target
from engine.errors import Location, ProjectError, SetupError, UsageError
from engine.lake.catalog import catalog_settings
from engine.project import load_project
from engine.project.followed_files import read_files
from engine.runtime.build import target_conf
from engine.runtime.context.run_context import jar_sets, state_jars
from engine.secrets.scrubber import MASK, is_credential, names_credential, names_secret_setting, scrub, without_secrets
from engine.spark._command import AVRO_LIMITS, STACK, driver_conf, write_properties
from engine.spark._pyspark import pyspark_home
from engine.spark.cluster import script_java_home
from engine.spark.jars import status
from engine.spark.java import NO_JAVA, find_java
from engine.spark.session import SessionSettings, session_conf
from engine.spark_master import MasterKind, is_loopback, kind_of, runs_locally


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
    readers = [node for node in manifest.nodes.values() if isinstance(node, Model | DataTest)]
    sets = (*jar_sets(manifest, readers), *catalog_settings.catalog_jars(target.catalog), *state_jars(target))
    jars = tuple(dict.fromkeys(path for _, path, _ in status(sets)))
    return SessionSettings(NO_JAVA, target_dir / "logs", jars, target.master, conf=target_conf(target))


COMMANDS: Final = ("build", "run", "test", "show", "maintain", "publish")
_WITH_UNIT_TESTS: Final = ("build", "test")
# They write nothing that needs a lock.
_READING: Final = ("show", "test")
_ARCHIVE: Final = "headrace"
_ENVIRONMENT: Final = "environment"
_DRIVER_OPTIONS: Final = "spark.driver.extraJavaOptions"
# Files that are often a key, by the end of their names; and what names say.
_KEY_FILES: Final = (
    ".json",
    ".pem",
    ".key",
    ".p8",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".env",
    ".ini",
)
_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")


class DeployMode(StrEnum):
    CLIENT = "client"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Submission:
    """What is handed to spark-submit.

    `{properties}` and `{archive}` in `options` are names of files that are written for it. `conf`: of the driver's
    start, without secrets, which the driver sets itself. `members`: files of the archive, in cluster mode only.
    `withheld`: files of the project that may be keys.
    """

    mode: DeployMode
    options: tuple[str, ...]
    command: tuple[str, ...]
    conf: dict[str, str]
    members: dict[str, Path]
    withheld: tuple[str, ...] = ()

    def arguments(self, files: Mapping[str, Path | str]) -> list[str]:
        """Return the arguments of spark-submit; `files` by `properties`, `main` and perhaps `archive`."""
        options = self.options
        for name, file in files.items():
            options = tuple(option.replace(f"{{{name}}}", str(file)) for option in options)
        return [*options, str(files["main"]), *self.command]


def submission(
    target: Target,
    manifest: Manifest,
    root: Path,
    target_dir: Path,
    command: Sequence[str],
    mode: DeployMode | None,
    environment: str,
) -> Submission:
    """Return what would be submitted; nothing is written or started.

    `mode` None: the driver runs on the cluster, where that is possible. `environment`: a packed Python environment for
    cluster mode; empty: the machines have one.

    Raises:
        UsageError: the target is local, or the command is not one that a cluster can run.
        SetupError: `not-supported`: the cluster cannot run it in this way.
        ProjectError: `secret-misplaced`: a file that the cluster needs holds a key or a token.
    """
    deploy_mode = _mode(target, mode)
    _check(target, command)
    name = command[0]
    shared = [*command, "--target", target.name]
    if name in _WITH_UNIT_TESTS and "--exclude" not in command:
        shared += ["--exclude", "test_type:unit"]
    options = ["--master", target.master, "--deploy-mode", deploy_mode.value, "--name", f"headrace-{manifest.project}"]
    options += ["--properties-file", "{properties}"]
    conf = _startup_conf(target, target_dir, manifest, deploy_mode)
    if deploy_mode is DeployMode.CLIENT:
        return Submission(deploy_mode, tuple(options), (*shared, "--project-dir", str(root)), conf, {})
    archives = [f"{{archive}}#{_ARCHIVE}", *([f"{environment}#{_ENVIRONMENT}"] if environment else [])]
    if environment:
        conf |= {f"spark.pyspark.{part}python": f"./{_ENVIRONMENT}/bin/python" for part in ("", "driver.")}
    # Python functions run on executors as well: those that decode Avro of unknown schemas.
    conf.setdefault("spark.executorEnv.PYTHONPATH", f"./{_ARCHIVE}/lib")
    project = _project_files(root)
    withheld = _withheld(root, target_dir, project)
    members = {**{f"project/{name}": path for name, path in project.items()}, **_engine_files()}
    options += ["--archives", ",".join(archives)]
    return Submission(deploy_mode, tuple(options), tuple(shared), conf, members, withheld)


def submit(prepared: Submission, folder: Path) -> int:
    java = find_java()
    files = {"properties": folder / "spark.properties", "main": folder / "headrace_main.py"}
    write_properties(files["properties"], prepared.conf)
    shutil.copyfile(Path(engine.__file__).parent / "cli" / "commands" / "submitted_main.py", files["main"])
    if prepared.members:
        files["archive"] = folder / "headrace.tar.gz"
        _pack(files["archive"], prepared.members)
    arguments = prepared.arguments(files)
    home = script_java_home(java.path, folder) if java.bundled else java.home
    # In client mode the driver is this command again, on this machine; a cluster's has variables of its own.
    environment = dict(os.environ) if prepared.mode is DeployMode.CLIENT else without_secrets()
    env = {**environment, "JAVA_HOME": str(home), "SPARK_HOME": str(pyspark_home())}
    if prepared.mode is DeployMode.CLIENT:
        env["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return subprocess.run([str(pyspark_home() / "bin" / "spark-submit"), *arguments], env=env, check=False).returncode


def _mode(target: Target, mode: DeployMode | None) -> DeployMode:
    kind = kind_of(target.master)
    if runs_locally(target.master):
        message = f"the target '{target.name}' has the master {target.master}: there is nothing to submit to"
        raise UsageError("usage", message, "Run the command itself: engine build.")
    if kind is MasterKind.STANDALONE and mode is DeployMode.CLUSTER:
        message = "a standalone cluster starts Java programs only in cluster mode, and Headrace is one in Python"
        hint = "Use --deploy-mode client, or engine build on a machine that is always there."
        raise SetupError("not-supported", message, hint)
    return mode or (DeployMode.CLIENT if kind is MasterKind.STANDALONE else DeployMode.CLUSTER)


def _check(target: Target, command: Sequence[str]) -> None:
    if not command or command[0] not in COMMANDS:
        command_text = f"'{command[0]}'" if command else "no command"
        raise UsageError(
            "usage", f"submit runs {', '.join(COMMANDS)}, and got {command_text}", "Write: engine submit build"
        )
    if command[0] not in _READING and "://" not in str(target.state):
        message = "the state is a folder, whose locks are held by the Java that Headrace starts, not by spark-submit's"
        hint = "Run engine build on this machine, or set 'state: s3a://<bucket>/<folder>' in the target."
        raise SetupError("not-supported", message, hint)


def _startup_conf(target: Target, target_dir: Path, manifest: Manifest, mode: DeployMode) -> dict[str, str]:
    """The settings without secrets: a cluster manager keeps them where others may read them."""
    conf = session_conf(submitted_settings(masked(target), target_dir, manifest))
    user_options = conf.get(_DRIVER_OPTIONS, "")
    own_options = ("-Duser.timezone=UTC", "-XX:+ExitOnOutOfMemoryError", STACK, *AVRO_LIMITS)
    conf[_DRIVER_OPTIONS] = " ".join((*own_options, user_options)).strip()
    excluded = {"spark.master", "spark.app.name", "spark.sql.warehouse.dir"}
    if mode is DeployMode.CLUSTER and not is_loopback(target.master):
        excluded |= {"spark.driver.host", "spark.driver.bindAddress"}
    return {
        key: value
        for key, value in sorted(conf.items())
        if key not in excluded
        and MASK not in value
        and not (names_secret_setting(key) and value not in {"true", "false"})
    }


def _project_files(root: Path) -> dict[str, Path]:
    """The files that a compilation reads, by their names in the project.

    Raises ProjectError: `secret-misplaced`: one holds a key or a token.
    """
    files = {
        name: Path(path) for name, path in read_files(root, load_project(root).paths).items() if Path(path).is_file()
    }
    for name, path in sorted(files.items()):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if is_credential(line):
                message = (
                    f"{name} holds a key, a token or an address with a password, and the cluster would get the file"
                )
                hint = "Write \"{{ env_var('ENGINE_SECRET_..') }}\" in its place: the driver reads its own environment."
                raise ProjectError("secret-misplaced", message, hint, location=Location(name, number))
    return {name: path.resolve() for name, path in sorted(files.items())}


def _withheld(root: Path, target_dir: Path, packed: Collection[str]) -> tuple[str, ...]:
    """The files that may be keys, and that nothing of the project reads."""
    names = (path.relative_to(root).as_posix() for path in _files(root, skipped=target_dir))
    return tuple(name for name in names if name not in packed and _may_be_key(name.rpartition("/")[2]))


def _may_be_key(name: str) -> bool:
    return name.lower().endswith(_KEY_FILES) or names_credential(_WORDS.sub("_", name.upper()))


def _engine_files() -> dict[str, Path]:
    package = Path(engine.__file__).parent
    return {
        f"lib/engine/{path.relative_to(package).as_posix()}": path for path in _files(package, skipped=package / "?")
    }


def _files(folder: Path, skipped: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__" or path.is_symlink() or path == skipped:
            continue
        if path.is_dir():
            yield from _files(path, skipped)
        else:
            yield path


def _pack(archive: Path, members: dict[str, Path]) -> None:
    with tarfile.open(archive, "w:gz") as file:
        for name, path in members.items():
            file.add(path, name, recursive=False)
