"""Where Headrace and its extras are installed from, in hints and in the workflow that `init` writes.

Nobody owns the name `headrace` on the package index, and whoever registers it would run code wherever that name is
installed. So it is written nowhere until the first release there: then `PUBLISHED` is set, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from engine import __version__

PUBLISHED: Final = False
WHEEL: Final = f"headrace-{__version__}-py3-none-any.whl"
_EXTRA: Final = re.compile(r";\s*extra\s*==\s*[\"']([\w-]+)[\"']\s*$")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# An address in a workflow is between quotes of a shell.
_PLAIN_ADDRESS: Final = re.compile(r"https://[A-Za-z0-9._~/:%+@-]+")


def install_hint(extra: str) -> str:
    if PUBLISHED:
        return f"Install it: pip install 'headrace[{extra}]=={__version__}'."
    packages = " ".join(f"'{package}'" for package in _packages(extra)) or f"'./{WHEEL}[{extra}]'"
    return f"Install the extra {extra}: pip install {packages}."


def pinned_requirement(extra: str = "") -> str:
    """Return a requirement for pip that installs this version of Headrace on another machine.

    It names the repository or archive of this installation with its commit or hash (PEP 610), or else a wheel in pip's
    working folder.
    """
    extras = f"[{extra}]" if extra else ""
    if PUBLISHED:
        return f"headrace{extras}=={__version__}"
    address = _origin(_direct_url())
    return f"headrace{extras} @ {address}" if address else f"./{WHEEL}{extras}"


def source_note() -> str:
    """Return comment lines on where the workflow gets Headrace from; empty: nothing to explain."""
    if PUBLISHED:
        return ""
    if _origin(_direct_url()):
        return "# Headrace comes from where the one that wrote this file came from.\n"
    return (
        f"# Headrace is on no package index: put the wheel {WHEEL} next to project.yml, and commit it.\n"
        "# In a clone of Headrace: python -m pip wheel --no-deps -w <folder of the project> .\n"
    )


def _packages(extra: str) -> Iterator[str]:
    try:
        requirements = distribution("headrace").requires or ()
    except PackageNotFoundError:
        return
    for requirement in requirements:
        if (direct_url := _EXTRA.search(requirement)) and direct_url[1] == extra:
            yield requirement[: direct_url.start()].strip()


def _direct_url() -> Mapping[str, Any]:
    try:
        content = json.loads(distribution("headrace").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError, OSError):
        return {}
    return content if isinstance(content, dict) else {}


def _origin(direct_url: Mapping[str, Any]) -> str:
    """Return the pinned address of an installation, without a login; empty if it is not pinned or not public."""
    try:
        parts = urlsplit(str(direct_url.get("url") or ""))
    except ValueError:
        return ""
    address = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
    if not _PLAIN_ADDRESS.fullmatch(address):
        return ""
    repository, archive = direct_url.get("vcs_info"), direct_url.get("archive_info")
    if isinstance(repository, dict) and repository.get("vcs") == "git":
        commit = str(repository.get("commit_id") or "")
        return f"git+{address}@{commit}" if _COMMIT.fullmatch(commit) else ""
    hashes = archive.get("hashes") if isinstance(archive, dict) else None
    digest = str(hashes.get("sha256") or "") if isinstance(hashes, dict) else ""
    return f"{address}#sha256={digest}" if _COMMIT.fullmatch(digest) else ""
