"""`engine debug --security`: what other users of the machine, or of the network, could reach."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.compile import Target, compile_project
from engine.errors import EngineError
from engine.lake.catalog.catalog_settings import is_local
from engine.pinned_settings import PINNED
from engine.project import load_project
from engine.runtime.operations.declared_tls import declared
from engine.runtime.operations.open_ports import answers, sessions
from engine.secrets import MIN_LENGTH, PREFIX, is_credential, names_credential
from engine.spark.jars import cache_dir
from engine.spark.private_session import AUTHENTICATE, CRYPTO
from engine.spark.private_session import PREFIX as SCRATCH
from engine.spark_master import runs_locally

_SHOWN = 3
_MOST_ENTRIES = 200_000
_TRUE = "true"


class CheckResult(StrEnum):
    """How a check ended; `fail` decides the exit code."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One line: a part, how it is, and what to do about it."""

    part: str
    level: CheckResult
    text: str
    hint: str = ""


def checks(target: Target, root: Path, target_dir: Path) -> Iterator[Check]:
    """Each thing that is looked at, in the order of the report.

    Args:
        target: the chosen one.
        root: the project's folder.
        target_dir: where artifacts are written.
    """
    yield from _ports(target)
    yield from _folders(target, target_dir)
    yield from _jars()
    yield _links(target_dir)
    yield from _settings(target)
    yield from _environment(os.environ)
    yield _templates()
    for what, level, text, hint in declared(target, root):
        yield Check(what, CheckResult(level), text, hint)


def _ports(target: Target) -> Iterator[Check]:
    found = False
    local = runs_locally(target.master)
    for port in sessions():
        found = True
        text = f"{port.address}:{port.number}, {port.who} (process {port.pid})"
        if not port.loopback and local:
            yield Check(
                "port",
                CheckResult.FAIL,
                f"{text}: reachable from other machines",
                "Remove spark.driver.bindAddress and UI.",
            )
        elif port.of_java and answers(port):
            hint = f"End the session; remove {AUTHENTICATE} from the target."
            yield Check("port", CheckResult.FAIL, f"{text}: no secret is required", hint)
        else:
            yield Check("port", CheckResult.OK, f"{text}: {port.guard}")
    if not found:
        where = (
            "no session of yours is running" if Path("/proc/net/tcp").exists() else "cannot be listed on this system"
        )
        yield Check("port", CheckResult.OK, f"{where}; a local one would listen on 127.0.0.1")


def _folders(target: Target, target_dir: Path) -> Iterator[Check]:
    cache = cache_dir().parent
    # The tables of a server are open to whom it lets in.
    lake = {"lake": target.catalog.path} if is_local(target.catalog) else {}
    # Whom a bucket lets in says the store.
    state = {"state": target.state} if isinstance(target.state, Path) else {}
    places = {**state, **lake, "target": target_dir, "cache": cache}
    for part, path in places.items():
        yield _folder(part, path)
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{SCRATCH}*")):
        if _owned(path):
            yield _folder("temporary", path)


def _folder(part: str, path: Path) -> Check:
    """How open a folder is, and whether somebody else could put another one in its place."""
    try:
        about = path.stat()
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return Check(part, CheckResult.OK, f"{path} does not exist yet")
        return Check(part, CheckResult.FAIL, f"{path}: {error.strerror}", "Make it a folder of yours.")
    mode = stat.S_IMODE(about.st_mode)
    level, text, hint = _openness(path, about.st_uid, mode)
    return Check(part, level, f"{path}, mode {mode:04o}{text}", hint)


def _openness(path: Path, owner: int, mode: int) -> tuple[CheckResult, str, str]:
    if owner != os.getuid():
        return CheckResult.FAIL, f", belongs to user {owner}", "Use a folder of your own."
    if mode & 0o022:
        return CheckResult.FAIL, ": others can write to it", f"chmod go-w {path}"
    if swapped := _writable_above(path):
        return CheckResult.FAIL, f": others can replace it, as {swapped} is open to them", f"chmod go-w {swapped}"
    if mode & 0o055:
        return CheckResult.WARN, ": others can read it", f"chmod 700 {path}, unless others may read it."
    return CheckResult.OK, "", ""


def _writable_above(path: Path) -> Path | None:
    """The first folder above in which others can rename what is there."""
    for above in path.absolute().parents:
        about = above.stat()
        sticky = about.st_mode & stat.S_ISVTX
        if (about.st_mode & 0o022 and not sticky) or about.st_uid not in {0, os.getuid()}:
            return above
    return None


def _owned(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _jars() -> Iterator[Check]:
    folder = cache_dir()
    files = sorted(folder.glob("*.jar")) if folder.is_dir() else []
    bad = [f for f in files if f.is_symlink() or not _owned(f) or f.stat().st_mode & 0o022]
    if bad:
        hint = f"Delete them and run 'engine jars fetch': {', '.join(map(str, bad[:_SHOWN]))}"
        yield Check(
            "jars", CheckResult.FAIL, f"{len(bad)} of {len(files)} jars in {folder} may belong to other users", hint
        )
    else:
        yield Check(
            "jars", CheckResult.OK, f"{len(files)} jars in {folder}, all yours, compared with their sha256 before use"
        )


def _links(target_dir: Path) -> Check:
    """Whether a link in the folder of artifacts leads what is written somewhere else."""
    found: list[Path] = [target_dir] if target_dir.is_symlink() else []
    entries = 0
    for folder, names, files in os.walk(target_dir, followlinks=False):
        entries += len(names) + len(files)
        found += [path for name in (*names, *files) if (path := Path(folder, name)).is_symlink()]
        if entries > _MOST_ENTRIES:
            break
    if found:
        shown = ", ".join(str(path) for path in found[:_SHOWN])
        return Check(
            "links", CheckResult.FAIL, f"{len(found)} links in {target_dir}: {shown}", "Delete them, or the folder."
        )
    return Check("links", CheckResult.OK, f"no links in {target_dir}")


def _settings(target: Target) -> Iterator[Check]:
    conf = {key.lower(): str(value).strip().lower() for key, value in target.conf.items()}
    others = [key for key, value in PINNED.items() if conf.get(key.lower(), value) != value]
    if others:
        yield Check(
            "settings", CheckResult.FAIL, f"the target sets {', '.join(others)}", "Remove it; builds reject it."
        )
    else:
        yield Check("settings", CheckResult.OK, f"{len(PINNED)} settings that affect SQL are pinned")
    guarded = conf.get(AUTHENTICATE) == _TRUE
    if not runs_locally(target.master):
        yield _cluster(target.master, guarded=guarded, encrypted=conf.get(CRYPTO) == _TRUE)
    elif conf.get(AUTHENTICATE, _TRUE) != _TRUE:
        hint = f"Remove {AUTHENTICATE} from the target."
        yield Check("settings", CheckResult.FAIL, f"{AUTHENTICATE} is off: other users can connect to a session", hint)
    else:
        yield Check("settings", CheckResult.OK, f"{AUTHENTICATE} is on, with a secret of each session")
    if conf.get("spark.ui.enabled") == _TRUE:
        hint = "Remove spark.ui.enabled."
        yield Check("settings", CheckResult.WARN, "Spark's web UI has no authentication", hint)
    options = conf.get("spark.driver.extrajavaoptions", "")
    if "jdwp" in options or "jmxremote" in options:
        hint = "Remove it from spark.driver.extraJavaOptions."
        yield Check("settings", CheckResult.WARN, "Java opens a port for a debugger or for JMX", hint)


def _cluster(master: str, *, guarded: bool, encrypted: bool) -> Check:
    """What the target says of the connections between the machines of a cluster."""
    where = f"master {master}"
    if not guarded:
        hint = f"Set {AUTHENTICATE} and its secret as on the cluster."
        return Check("settings", CheckResult.WARN, f"{where}: Spark's ports want no secret", hint)
    if not encrypted:
        hint = f"Set {CRYPTO} as on the cluster."
        text = f"{where}: rows and passwords of sources go unencrypted between its machines"
        return Check("settings", CheckResult.WARN, text, hint)
    return Check("settings", CheckResult.OK, f"{where}: Spark's connections are authenticated and encrypted")


def _environment(env: Mapping[str, str]) -> Iterator[Check]:
    """Names of variables, never a value."""
    ours = sorted(name for name in env if name.startswith(PREFIX))
    short = [name for name in ours if len(env[name]) < MIN_LENGTH]
    yield Check("secrets", CheckResult.OK, f"{len(ours)} named {PREFIX}*{_names(ours)}")
    if short:
        text = f"{len(short)} shorter than {MIN_LENGTH} characters, and so not masked{_names(short)}"
        yield Check("secrets", CheckResult.WARN, text, "Use longer ones.")
    other = sorted(n for n, value in env.items() if not n.startswith(PREFIX) and _sensitive(n, value))
    if other:
        hint = f"Templates of a project can read them: name them {PREFIX}*, or unset them for projects of others."
        yield Check("secrets", CheckResult.WARN, f"{len(other)} more look like secrets{_names(other)}", hint)


def _sensitive(name: str, value: str) -> bool:
    return bool(value) and (names_credential(name) or is_credential(value))


def _names(names: list[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def _templates() -> Check:
    """Whether a template can get at a secret: a small project tries it with one that was just made up."""
    name, value = f"{PREFIX}PROBE_{secrets.token_hex(4).upper()}", secrets.token_hex(16)
    # The text of an object, and the value itself.
    asked = ("[env_var, target, var, ref] | string", f"env_var('{name}', 'none')")
    texts = (f"select '{{{{ ({what}) | replace(\"'\", '') | replace('\\\\', '') }}}}' as a" for what in asked)
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder, _variable(name, value):
        root = Path(folder)
        (root / "models").mkdir()
        project = "name: probe\nversion: '1'\ntarget: dev\ntargets: {dev: {catalog: {type: sqlite}, schema: probe}}\n"
        (root / "project.yml").write_text(project, encoding="utf-8")
        for number, text in enumerate(texts):
            (root / "models" / f"m{number}.sql").write_text(text, encoding="utf-8")
        try:
            manifest = compile_project(load_project(root)).manifest
            told = [model.sql for model in manifest.models] + [str(error) for error in manifest.errors]
        except EngineError as error:
            told = [str(error)]
    if any(value in text for text in told):
        return Check("templates", CheckResult.FAIL, f"templates can read {PREFIX}*", "Update Headrace.")
    return Check("templates", CheckResult.OK, f"templates do not see the values of {PREFIX}*")


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
