"""One run of the Ivy that ships inside PySpark: downloads given jars and nothing they depend on."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from engine.errors import SetupError
from engine.secrets.scrubber import without_secrets
from engine.spark._pyspark import pyspark_home
from engine.spark.java import Java

TEMPORARY: Final = ".fetch-"
_PROCESS_SECONDS: Final = 600
_LEFTOVER_SECONDS: Final = 24 * 3600
_HINT: Final = (
    "The download is needed once. To use a mirror, set ENGINE_IVY_SETTINGS to an ivysettings.xml; to use jars "
    "prepared elsewhere, set ENGINE_JARS to their folder."
)
# The resolver's root is Ivy's own default. Poms are not asked for: no dependency of a jar is wanted.
_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="maven"/>
  <timeout-constraints>
    <timeout-constraint name="bounded" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" usepoms="false" timeoutConstraint="bounded"/>
  </resolvers>
</ivysettings>
"""


def download(coordinates: Sequence[str], folder: Path, java: Java, env: Mapping[str, str]) -> Path:
    """Download jars into a folder below the given one, and return it.

    Raises SetupError: jars-download, if a jar is not there afterwards.
    """
    out = folder / "out"
    output = _run(_command(coordinates, folder, out, java, env), env)
    # Ivy's exit code proves nothing, the files are.
    for coordinate in coordinates:
        if not (out / file_name(coordinate)).is_file():
            raise SetupError("jars-download", f"{coordinate} was not downloaded: {_cause(output)}", _HINT)
    return out


def file_name(coordinates: str) -> str:
    _, artifact, version, *type_and_classifier = coordinates.split(":")
    extension, classifier = type_and_classifier or ("jar", "")
    return f"{'-'.join(filter(None, (artifact, version, classifier)))}.{extension}"


def remove_leftovers(cache: Path) -> None:
    """Remove the folders of downloads that were killed, once they are a day old."""
    for folder in cache.glob(f"{TEMPORARY}*"):
        if time.time() - folder.stat().st_mtime > _LEFTOVER_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _command(coordinates: Sequence[str], folder: Path, out: Path, java: Java, env: Mapping[str, str]) -> list[str]:
    settings = env.get("ENGINE_IVY_SETTINGS")
    if not settings:
        settings = str(folder / "ivysettings.xml")
        Path(settings).write_text(_SETTINGS, encoding="utf-8")
    elif not Path(settings).is_file():
        message = f"ENGINE_IVY_SETTINGS is {settings}, which is not a file"
        raise SetupError("jars-download", message, "Set it to the path of an Ivy settings file, or unset it.")
    ivy = folder / "ivy.xml"
    ivy.write_text(_module(coordinates), encoding="utf-8")
    from engine.spark.truststore import trust_store_options

    trust = trust_store_options(folder / "trust.jks", env) if java.bundled else []
    options = [*trust, *_proxy_options(env), f"-Divy.default.ivy.user.dir={folder / 'ivy'}"]
    # fmt: off
    return [
        str(java.path), *options, "-cp", f"{pyspark_home()}/jars/*", "org.apache.ivy.Main",
        "-settings", settings, "-ivy", str(ivy), "-cache", str(folder / "cache"), "-confs", "default",
        "-retrieve", f"{out}/[artifact]-[revision](-[classifier]).[ext]",
    ]
    # fmt: on


def _module(coordinates: Sequence[str]) -> str:
    dependencies = "\n".join(_dependency(*coordinate.split(":")) for coordinate in coordinates)
    return f"""\
<ivy-module version="2.0" xmlns:maven="http://ant.apache.org/ivy/maven">
  <info organisation="headrace" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _dependency(group: str, artifact: str, version: str, extension: str = "jar", classifier: str = "") -> str:
    # It loads `urllib.request` and `ssl`, 20 ms that whoever asks for the name of a jar should not wait for.
    from xml.sax.saxutils import quoteattr

    kind = f"type={quoteattr(extension)} ext={quoteattr(extension)}"
    if classifier:
        kind += f" maven:classifier={quoteattr(classifier)}"
    return (
        f"    <dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
        f' transitive="false" conf="default->default">'
        f"<artifact name={quoteattr(artifact)} {kind}/></dependency>"
    )


def _proxy_options(env: Mapping[str, str]) -> list[str]:
    """Java ignores the proxy variables that pip obeys."""
    options = []
    for scheme in ("http", "https"):
        proxy = urlsplit(env.get(f"{scheme}_proxy") or env.get(f"{scheme.upper()}_PROXY") or "")
        if proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    excluded = env.get("no_proxy") or env.get("NO_PROXY")
    if options and excluded:
        hosts = [host for host in re.split(r"[,\s]+", excluded) if host]
        patterns = [f"*{host}" if host.startswith(".") else host for host in hosts]
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(patterns)}")
    return options


def _run(command: Sequence[str], env: Mapping[str, str]) -> str:
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=without_secrets(env),
            timeout=_PROCESS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        late = f"The download did not end within {_PROCESS_SECONDS // 60} minutes."
        raise SetupError("jars-download", late, _HINT) from error
    return run.stdout


def _cause(output: str) -> str:
    errors = output.partition(":::: ERRORS")[2]
    for line in errors.splitlines():
        # The address is left out: it may hold a mirror's user and password.
        text = re.sub(r"(?<!\s)\s*+\burl=\S++", "", re.sub(r"^\w+Handler: ", "", line.strip()))
        if text:
            return _plain_reason(text)
    if re.search(r":: (?:(?!:: ).)+: not found", output):
        return "the repository does not have it"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "Ivy gave no reason"


def _plain_reason(text: str) -> str:
    if "PKIX" in text or "SSLHandshake" in text:
        return f"the repository's certificate is not trusted by this Java ({text.partition(':')[0]})"
    if match := re.match(r"(\S+): (?:Name or service not known|nodename nor servname.*)", text):
        return f"the host {match[1]} is unknown"
    return text.rstrip(".")
