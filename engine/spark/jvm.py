"""The driver's JVM: started by us rather than by PySpark, so that it can inherit locks and die with us.

Java is launched directly, or where Spark has settings of its own through Spark's scripts. Both end as one process
with the same handshake: PySpark's gateway writes its port and secret into a file that we name. Java writes spark.log
itself: through a pipe of ours it would wait for this process, and lose its output with it. So secrets in the log are
overwritten where they are, with as many asterisks; what is appended meanwhile stays where it is.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from engine.errors import ProjectError, SetupError
from engine.secrets.scrubber import secret_spans, secret_values
from engine.spark import archive
from engine.spark._command import (
    archivable,
    command,
    driver_conf,
    environment,
    with_jars,
    with_options_file,
    write_properties,
)
from engine.spark.java import Java
from engine.spark.private_session import LOCAL_DIRS, UMASK, Scratch, remove, scratch
from engine.target_folder import TargetFolder, forget_oldest

_EACH: Final = 1.0
_CHUNK: Final = 1 << 22
# A secret may begin in what was looked at before: a key in PEM has some thousand characters.
_OVERLAP: Final = 1 << 16
# Keeping the newest part of a log moves its bytes.
MOVES: Final = threading.Lock()


class LogMask:
    """Masks secrets in a log once a second, beginning with what it holds already, until `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked_at = 0
        self._values: tuple[str, ...] = ()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="engine-log-mask", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.mask()

    def mask(self) -> None:
        """Mask what is new; all of the log where secrets have become known since."""
        values = secret_values()
        with MOVES, suppress(OSError):
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode):
                    if values != self._values or status.st_size < self._looked_at:
                        self._looked_at = 0
                    mask_secrets(descriptor, max(0, self._looked_at - _OVERLAP), status.st_size)
                    self._looked_at, self._values = status.st_size, values
            finally:
                os.close(descriptor)

    def _work(self) -> None:
        while not self._ended.wait(_EACH):
            self.mask()


def mask_secrets(descriptor: int, begin: int, end: int) -> None:
    """Overwrite the secrets in a part of a file; line ends in them stay.

    Raises OSError: the file cannot be read or written.
    """
    at = begin
    while at < end:
        data = os.pread(descriptor, min(_CHUNK, end - at), at)
        if not data:
            return
        text = data.decode("utf-8", "surrogateescape")
        for first, last in secret_spans(text):
            offset = len(text[:first].encode("utf-8", "surrogateescape"))
            hidden = text[first:last].encode("utf-8", "surrogateescape")
            os.pwrite(descriptor, bytes(byte if byte in b"\r\n" else ord("*") for byte in hidden), at + offset)
        if at + len(data) >= end:
            return
        at += max(len(data) - _OVERLAP, 1)


LOG_NAME: Final = "spark.log"
_START_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.005
EXIT_SECONDS: Final = 10.0
_TERMINATE_SECONDS: Final = 5.0
_TAIL_BYTES: Final = 64 * 1024
# The processes of this one, from their start to their end.
_running: Final[set[subprocess.Popen[bytes]]] = set()
_GATEWAY_VARIABLES: Final = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


@dataclass(frozen=True, slots=True)
class Jvm:
    """`process` is Java's own, also where Spark's scripts started it; `missed` classes were read from jars."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    _secret: str = field(repr=False)
    scratch: tuple[Path, ...] = ()
    missed: archive.Classes | None = None
    mask: LogMask | None = field(default=None, repr=False, compare=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def publish(self) -> None:
        os.environ.update(zip(_GATEWAY_VARIABLES, (str(self.port), self._secret), strict=True))

    def stop(self, exit_seconds: float = EXIT_SECONDS) -> None:
        """End the JVM: by closing its input, else by force; bounded, and harmless when repeated. Its folders go too."""
        if os.environ.get(_GATEWAY_VARIABLES[1]) == self._secret:
            for name in _GATEWAY_VARIABLES:
                os.environ.pop(name, None)
        _end(self.process, exit_seconds)
        if self.mask is not None:
            self.mask.close()
        remove(self.scratch)


def kill_all() -> None:
    """Kill every JVM of this process, those too that are starting; what waits for them fails."""
    for process in tuple(_running):
        process.kill()


def start_jvm(
    java: Java,
    *,
    conf: Mapping[str, str],
    log_dir: Path,
    inherit_fds: Sequence[int] = (),
    memory: str | None = None,
    log_level: str = "warn",
    jars: Sequence[Path] = (),
    archiving: Sequence[str] = (),
    umask: int = UMASK,
    meanwhile: Callable[[], object] = lambda: None,
) -> Jvm:
    """Start a driver JVM and hand its gateway to PySpark through the environment.

    Raises SetupError: java-start, with the last thing the JVM said.
    """
    with ExitStack() as undo:
        # tempfile makes the folder 0700: the properties and the gateway's secret pass through it.
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="headrace-")))
        properties, connection = folder / "spark.properties", folder / "connection"
        own_scratch = undo.enter_context(scratch(conf))
        placed = _with_crash_report(_in_scratch(conf, own_scratch), log_dir)
        own_conf = with_jars(java, driver_conf(placed, memory, log_level), jars)
        full_conf = with_options_file(own_conf, folder / "java.options")
        write_properties(properties, full_conf)
        log, output = log_dir / LOG_NAME, undo.enter_context(open_log(log_dir))
        start_of_log = os.fstat(output.fileno()).st_size
        classes = archivable(java, own_conf, jars)
        class_archive = archive.archive_path(classes) if classes and not archiving else None
        options = archiving or (archive.reading(classes, class_archive) if classes and class_archive else ())
        arguments = command(java, full_conf, properties, jars, options)
        env = {**environment(java, connection), LOCAL_DIRS: ",".join(map(str, own_scratch.folders))}
        process = _spawn(arguments, env, output, (*inherit_fds, *own_scratch.locks), umask)
        _running.add(process)
        on_failure = undo.enter_context(ExitStack())
        # It has nothing to put in order yet, and does not see that its input ends before it has loaded Spark.
        on_failure.callback(_end, process, 0.0)
        meanwhile()
        port, secret = _handshake(process, connection, log, start_of_log)
        on_failure.pop_all()
    archived = archiving or (class_archive is not None and archive.is_mapped(process.pid, class_archive))
    jvm = Jvm(process, port, log, secret, own_scratch.folders, None if archived else classes, LogMask(log))
    jvm.publish()
    return jvm


def _in_scratch(conf: Mapping[str, str], own_scratch: Scratch) -> dict[str, str]:
    """The configuration with Java's temporary folder; options given by the caller come behind it, and win."""
    key = "spark.driver.extraJavaOptions"
    return {**conf, key: f"{shlex.quote(f'-Djava.io.tmpdir={own_scratch.folders[0]}')} {conf.get(key, '')}".strip()}


def _with_crash_report(conf: Mapping[str, str], log_dir: Path) -> dict[str, str]:
    """The configuration with the place of Java's report of a crash, which has memory and variables in it.

    Java writes it, and a core file with all of its memory, into the folder where it was started: the project. The
    report goes beside the log, which only its owner can read. A core is written only if the caller's options say so.
    """
    key = "spark.driver.extraJavaOptions"
    # Java takes a percent sign for the beginning of a variable, and two of them for one.
    error_file = f"-XX:ErrorFile={str(log_dir.absolute()).replace('%', '%%')}/hs_err_pid%p.log"
    return {**conf, key: f"{shlex.quote(error_file)} -XX:-CreateCoredumpOnCrash {conf.get(key, '')}".strip()}


def open_log(log_dir: Path) -> BinaryIO:
    """Open spark.log to add to its end; of one that is too large the newest part is kept.

    Raises:
        ProjectError: `target-link`.
        SetupError: java-start, it cannot be written.
    """
    # Errors of Spark quote rows and settings: the log is for its owner.
    with TargetFolder(log_dir.parent, keep_mode=True) as folder:
        try:
            log = folder.append(f"{log_dir.name}/{LOG_NAME}")
        except ProjectError as error:
            if error.diagnostic.code == "target-link":
                raise
            message = f"the log {error.diagnostic.message}"
            raise SetupError("java-start", message, error.diagnostic.hint) from error
    with MOVES, suppress(OSError):
        forget_oldest(log.fileno())
    return log


def _spawn(
    arguments: Sequence[str], env: Mapping[str, str], output: BinaryIO, inherit_fds: Sequence[int], umask: int
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            arguments,
            env=env,
            # PySpark's gateway exits when its input ends, which also happens when we are killed.
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(inherit_fds),
            # Ctrl-C is ours to handle: the JVM must live until the running batch is dealt with.
            start_new_session=True,
            umask=umask,
        )
    except OSError as error:
        hint = "Check JAVA_HOME, and that the file can be executed."
        raise SetupError("java-start", f"{arguments[0]} cannot be run: {error.strerror}", hint) from error


def _handshake(process: subprocess.Popen[bytes], connection: Path, log: Path, start_of_log: int) -> tuple[int, str]:
    deadline = time.monotonic() + _START_SECONDS
    # The gateway renames a complete file into place.
    while not connection.exists():
        if process.poll() is not None:
            last_words = _last_words(log, start_of_log)
            raise SetupError("java-start", f"Java ended while Spark was starting: {last_words}", f"See {log}.")
        if time.monotonic() > deadline:
            late = f"Spark did not start within {_START_SECONDS:.0f} seconds"
            raise SetupError("java-start", late, f"See {log}.")
        time.sleep(_POLL_SECONDS)
    raw = connection.read_bytes()
    port, length = struct.unpack_from(">ii", raw)
    return port, raw[8 : 8 + length].decode()


def _end(process: subprocess.Popen[bytes], exit_seconds: float) -> None:
    if process.stdin is not None:
        process.stdin.close()
    for force, seconds in ((process.terminate, exit_seconds), (process.kill, _TERMINATE_SECONDS)):
        deadline = time.monotonic() + seconds
        # `wait` with a bound looks twenty times a second.
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        if process.returncode is not None:
            break
        force()
    process.wait()
    _running.discard(process)


def _last_words(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    messages = [line.strip() for line in lines if line.strip() and not _is_noise(line)]
    causes = [line for line in messages if line.startswith("Caused by: ")]
    line = (causes or messages or ["it gave no reason."])[-1]
    return re.sub(r'^(Caused by|Exception in thread "[^"]*"):? ', "", line)


def _is_noise(line: str) -> bool:
    return line.startswith(
        (
            "\t",
            "    at ",
            "WARNING:",
            "Error: Could not create the Java Virtual Machine",
            "Error: A fatal exception has occurred",
        )
    )
