"""The Spark session: the engine's defaults, its start, its complete end, and whether an open one is still valid."""

from __future__ import annotations

import os
import re
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from engine import kill_points, local_paths
from engine.errors import SetupError
from engine.secrets.scrubber import scrubber
from engine.spark import archive_writer, checkpoint_files, local_files, record_readers
from engine.spark._command import AVRO_LIMITS, STACK
from engine.spark.archive import OPTION_VARIABLES
from engine.spark.cluster import (
    SubmittedJvm,
    await_executors,
    check_masters,
    executor_python,
    is_submitted,
    runtime_conf,
    usable_cores,
)
from engine.spark.internals.connection import forget, guard_callbacks, is_active, know_packages, set_for_all_sessions
from engine.spark.internals.handles import jvm_of
from engine.spark.java import Java
from engine.spark.jvm import EXIT_SECONDS, LOG_NAME, Jvm, open_log, start_jvm
from engine.spark.private_session import AUTHENTICATE, CRYPTO, LOCAL_SETTINGS, UMASK
from engine.spark_master import is_loopback, runs_locally
from engine.spark_options import PINNED

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


ICEBERG_EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_REDACTING: Final = ("spark.redaction.regex", "spark.sql.redaction.options.regex")
_STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Spark's own expression misses keys in PEM, access-key-id and what Kafka calls jaas (all measured); it is
# matched against names and values, so that a user and password inside a URL are hidden as well.
REDACTION: Final = (
    "(?i)secret|passwor?d|passwd|passphrase|token|credential|api[._-]?key|access[._-]?key|account[._-]?key"
    "|private[._-]?key|keystore[._-]?key|certificate[._-]?chain|truststore[._-]?certificates|jaas"
    "|authorization|://[^/@:]+:[^/@]+@"
)
_PYTHON_VARIABLE: Final = "PYSPARK_PYTHON"
_SHUFFLE: Final = "spark.sql.shuffle.partitions"
_DRIVER_OPTIONS: Final = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"
_LOUD: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LOCAL_STATE_PARTITIONS: Final = "2"
# Spark compiles each stage of a query for itself and keeps the last 100. A micro-batch of a model with state has about
# ten: with more models than that side by side, each one would be compiled again in every micro-batch.
_COMPILED_QUERIES: Final = "1000"
# Each tenth micro-batch writes the list of all files that a stream has read. Spark keeps those of ten minutes, for
# object stores that show files late: 2,200 files and 33 MB after an hour of one file a second.
_LOG_CLEANUP_DELAY: Final = "1m"
# Spark looks at more than 32 files of a micro-batch in a job of its own, with a task for each of them, up to 10,000.
# The threads of one machine share them as well in a few tasks: 2,000 small files are read in a fifth of the time.
_LISTING_TASKS: Final = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "16"}


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """`conf` wins over the engine's defaults; the JVM holds `inherit_fds` until it is gone; `brief`: little to do."""

    java: Java
    log_dir: Path
    jar_paths: Sequence[Path] = ()
    master: str = "local[*]"
    app_name: str = "headrace"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    inherit_fds: Sequence[int] = ()
    log_level: str = "warn"
    archiving: Sequence[str] = ()
    keep_classes: bool = False
    brief: bool = False
    umask: int = UMASK

    @property
    def local(self) -> bool:
        return runs_locally(self.master)


@dataclass(frozen=True, slots=True)
class Session:
    spark: SparkSession
    jvm: Jvm | SubmittedJvm
    _own_python: bool
    _keep_classes: bool = False

    def close(self, exit_seconds: float = EXIT_SECONDS) -> None:
        _close(self.jvm, self.spark, own_python=self._own_python, exit_seconds=exit_seconds)
        if self._keep_classes and self.jvm.missed is not None:
            archive_writer.begin_writing(self.jvm.missed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(settings: SessionSettings, meanwhile: Callable[[], object] = lambda: None) -> Session:
    """Start a JVM and a session in it; close() or leaving a with block ends both.

    Raises:
        SetupError: `java-start`, or `spark-session` with the reason in one line; `cluster-unreachable` and
            `cluster-without-executors`, both in bounded time.
    """
    if is_active():
        raise SetupError("spark-session", "this process already has a Spark session", "Close it first.")
    check_masters(settings.master)
    # A worker of a session on this machine is this Python, not whatever python3 is on the path.
    python = executor_python(settings.master, settings.conf)
    own_python = python is not None and _PYTHON_VARIABLE not in os.environ
    jvm = _driver(settings, meanwhile)
    with _closing_on_failure(jvm, own_python=own_python):
        if own_python and python is not None:
            os.environ[_PYTHON_VARIABLE] = python
        kill_points.reach("java started", settings.app_name)
        spark = _connect(jvm, runtime_conf(session_conf(settings)) if isinstance(jvm, SubmittedJvm) else {})
        if not settings.local:
            await_executors(spark, settings.master, jvm.log)
            _spread(spark, settings.conf)
        kill_points.reach("connected", settings.app_name)
        return Session(spark, jvm, own_python, settings.keep_classes)


def _driver(settings: SessionSettings, meanwhile: Callable[[], object]) -> Jvm | SubmittedJvm:
    def load() -> None:
        import pyspark.sql.streaming
        import pyspark.testing.utils  # noqa: F401 - `lit()` asks it whether there is NumPy

        meanwhile()

    if is_submitted():
        return SubmittedJvm(settings.log_dir / LOG_NAME)
    return start_jvm(
        settings.java,
        conf=session_conf(settings),
        log_dir=settings.log_dir,
        inherit_fds=settings.inherit_fds,
        log_level=settings.log_level,
        jars=settings.jar_paths,
        archiving=settings.archiving,
        umask=settings.umask,
        meanwhile=load,
    )


def _spread(spark: SparkSession, conf: Mapping[str, str]) -> None:
    """Give queries as many partitions as the cluster has cores: a checkpoint keeps the number that it began with."""
    if _SHUFFLE not in conf:
        cores = str(usable_cores(spark, conf))
        spark.conf.set(_SHUFFLE, cores)
        # Sessions of models are made by newSession, which begins with what all sessions share.
        set_for_all_sessions(spark, _SHUFFLE, cores)


def session_conf(settings: SessionSettings) -> dict[str, str]:
    """All settings of a session: the engine's defaults under the caller's, and what is pinned above both."""
    conf = {**_defaults(settings), **settings.conf}
    conf |= {**PINNED, "spark.master": settings.master, "spark.app.name": settings.app_name}
    if not settings.local:
        # On one machine it would make the one executor fetch the driver's own jars, 60 MB copied at each start.
        own_jars = map(local_paths.encoded, (checkpoint_files.JAR, record_readers.JAR, *settings.jar_paths))
        conf["spark.jars"] = ",".join(filter(None, [*own_jars, conf.get("spark.jars", "")]))
    if not settings.local:
        conf[_EXECUTOR_OPTIONS] = " ".join((STACK, *AVRO_LIMITS, conf.get(_EXECUTOR_OPTIONS, ""))).strip()
    if settings.brief and settings.local:
        conf[_DRIVER_OPTIONS] = f"{_brief(conf)} {conf.get(_DRIVER_OPTIONS, '')}".strip()
    key, codecs = record_readers.CODECS
    conf[key] = ",".join(filter(None, (codecs, conf.get(key, ""))))
    extensions = conf.get("spark.sql.extensions", "")
    if ICEBERG_EXTENSIONS not in extensions:
        conf["spark.sql.extensions"] = ",".join(part for part in (ICEBERG_EXTENSIONS, extensions) if part)
    return _redacted(conf)


def _redacted(conf: dict[str, str]) -> dict[str, str]:
    """The settings, with those that hold a secret under a name that does not say so among what Spark does not show.

    Spark's event log has all settings. `Utils.redact` compares names and values with the expression: names are added to
    it, as a secret in it would be shown itself.
    """
    clean = scrubber()
    secret_keys = [key for key, value in conf.items() if key not in _REDACTING and clean(value) != value]
    if secret_keys:
        # The event log lists Hadoop's own settings too, by their names without the prefix (measured).
        hadoop = [key.removeprefix("spark.hadoop.") for key in secret_keys]
        names = "|".join(sorted(re.escape(key) for key in {*secret_keys, *hadoop}))
        conf |= {key: f"{conf[key]}|^(?:{names})$" for key in _REDACTING}
    return conf


def _brief(conf: Mapping[str, str]) -> str:
    """Java's first compiler alone, and its serial collector unless another one is chosen: two are an error."""
    user_options = " ".join(
        (*(conf.get(key, "") for key in (_DRIVER_OPTIONS, "spark.driver.defaultJavaOptions")),
         *(os.environ.get(name, "") for name in OPTION_VARIABLES))
    )  # fmt: skip
    collector = "" if re.search(r"-XX:\+Use\w+GC\b", user_options) else " -XX:+UseSerialGC"
    return f"-XX:TieredStopAtLevel=1{collector}"


def _defaults(settings: SessionSettings) -> dict[str, str]:
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps the plans and metrics of what ran for a page that is not shown: a gigabyte of them in a long run.
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.redaction.regex": REDACTION,
        "spark.sql.redaction.options.regex": REDACTION,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.codegen.cache.maxEntries": _COMPILED_QUERIES,
        "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **checkpoint_files.SETTINGS,
        # Spark 2 wrote checkpoints to the encoded name of a folder, and later versions look for that: a project `a%20b`
        # beside one named `a b` would be taken for such a checkpoint.
        "spark.sql.streaming.checkpoint.escapedPathCheck.enabled": "false",
        "spark.sql.warehouse.dir": local_paths.hadoop(settings.log_dir.absolute().parent / "spark-warehouse"),
    }
    if is_loopback(settings.master):
        # All workers of such a master are on this machine, and nothing beyond it may reach the driver.
        conf |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
    if not settings.local:
        # The executors compact their state themselves; most builds end before Spark's one minute has passed.
        conf["spark.sql.streaming.stateStore.maintenanceInterval"] = "15s"
        # The key of these files goes over connections whose encryption both sides must agree on: not set here.
        if settings.conf.get(CRYPTO) == "true":
            conf["spark.io.encryption.enabled"] = "true"
    if settings.local:
        conf |= {
            # Executors of a cluster must reach the driver; on one machine nothing beyond it may.
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            **(LOCAL_SETTINGS if settings.conf.get(AUTHENTICATE, "true") == "true" else {}),
            # Hadoop sets the permissions of a checkpoint's files itself, here without a process for each of them.
            **local_files.SETTINGS,
            "spark.hadoop.fs.permissions.umask-mode": f"{settings.umask:03o}",
            _SHUFFLE: _LOCAL_STATE_PARTITIONS,
            **_LISTING_TASKS,
            "spark.sql.streaming.fileSource.log.cleanupDelay": _LOG_CLEANUP_DELAY,
        }
    return conf


def _connect(jvm: Jvm | SubmittedJvm, conf: Mapping[str, str]) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # They print each rejected query with its plan, in which a stream of Kafka shows its password (measured).
    for name in _LOUD:
        PySparkLogger.getLogger(name).disabled = True
    try:
        with _unwarned():
            with _own_interrupts():
                context = SparkContext.getOrCreate(SparkConf().setAll(list(conf.items())))
            with _without_machine_learning(context) if isinstance(jvm, Jvm) else nullcontext():
                spark = SparkSession.builder.config(map=dict(conf)).getOrCreate()
        know_packages(jvm_of(spark))
        guard_callbacks(spark)
    # Where Java ends meanwhile, PySpark finds packages in place of classes, and no gateway.
    except (Py4JError, PySparkException, OSError, TypeError, AttributeError, AssertionError, RuntimeError) as error:
        text = "".join(traceback.format_exception(error))
        with open_log(jvm.log.parent) as log:
            log.write(text.encode("utf-8", "replace"))
        reason = _one_line(text)
        raise SetupError("spark-session", f"Spark could not start: {reason}", f"See {jvm.log}.") from error
    return spark


@contextmanager
def _without_machine_learning(context: SparkContext) -> Iterator[None]:
    """Make sessions without the extension of Spark's machine learning (`SessionLoader.java`); others count."""
    jvm = jvm_of(context)
    thread = jvm.java.lang.Thread.currentThread()
    loader = thread.getContextClassLoader()
    thread.setContextClassLoader(jvm.headrace.SessionLoader(loader))
    try:
        yield
    finally:
        thread.setContextClassLoader(loader)


@contextmanager
def _unwarned() -> Iterator[None]:
    """Leave out PySpark's warning that its JVM did not answer while it stopped: the JVM is ended in any case."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
        yield


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep what Ctrl-C does: PySpark's handler asks the JVM to cancel its jobs, and fails where there is no answer."""
    own_handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if own_handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, own_handler)


def _one_line(trace: str) -> str:
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (causes or java or lines)[-1]


@contextmanager
def _closing_on_failure(jvm: Jvm | SubmittedJvm, *, own_python: bool) -> Iterator[None]:
    has_succeeded = False
    try:
        yield
        has_succeeded = True
    finally:
        if not has_succeeded:
            _close(jvm, None, own_python=own_python)


def _close(
    jvm: Jvm | SubmittedJvm, spark: SparkSession | None, *, own_python: bool, exit_seconds: float = EXIT_SECONDS
) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # Each step is taken whatever becomes of the others: the next session of this process depends on all of them.
    with ExitStack() as steps:
        if own_python:
            steps.callback(os.environ.pop, _PYTHON_VARIABLE, None)
        steps.callback(jvm.stop, exit_seconds)
        steps.callback(forget)
        # A JVM that died needs no stopping; what it said is in its log.
        with suppress(Py4JError, PySparkException, OSError, TypeError, AttributeError):
            if spark is not None and jvm.alive:
                kill_points.reach("session closing", "")
                with _unwarned():
                    spark.stop()


_MAX_NAMES: Final = 3
# Settings that name files which Java reads when it starts.
_FILES: Final = ("spark.jars", "spark.driver.extraClassPath", "spark.files", "spark.submit.pyFiles")

Stamps = Mapping[str, tuple[int, int, int]]


def why_restart(current_settings: SessionSettings, new_settings: SessionSettings, stamps: Stamps) -> str:
    """Return why another session is needed, without secret values; empty: the one that is open will do."""
    if current_settings.master != new_settings.master:
        return f"spark master is now {new_settings.master}"
    changed_keys = sorted(
        key
        for key in {*current_settings.conf, *new_settings.conf}
        if current_settings.conf.get(key) != new_settings.conf.get(key)
    )
    if changed_keys:
        return f"{_listed(changed_keys)} changed"
    missing_jars = [path.name for path in new_settings.jar_paths if path not in current_settings.jar_paths]
    if missing_jars:
        return f"it needs {_listed(missing_jars)}"
    if current_settings.umask != new_settings.umask:
        return "the permissions of the lake's folder changed"
    if current_settings.java != new_settings.java:
        return "Java is another one"
    replaced_files = sorted(name for name, stamp in file_stamps(new_settings.conf).items() if stamps.get(name) != stamp)
    return f"{_listed(Path(name).name for name in replaced_files)} was replaced" if replaced_files else ""


def file_stamps(conf: Mapping[str, str]) -> Stamps:
    stamps = {}
    for key in _FILES:
        for part in conf.get(key, "").replace(":/", "\0/").replace(":", ",").replace("\0/", ":/").split(","):
            path = Path(local_paths.path_of_location(local_paths.decoded(part.strip())) or part.strip())
            try:
                stat = path.stat()
            except (OSError, ValueError):
                continue
            if part.strip() and path.is_file():
                stamps[str(path)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return stamps


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    unlisted = len(listed) - _MAX_NAMES
    return ", ".join(listed[:_MAX_NAMES]) + (f" and {unlisted} more" if unlisted > 0 else "")
