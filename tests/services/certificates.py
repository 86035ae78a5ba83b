"""Certificates for tests: an authority of its own and what it signs, made by openssl when they are needed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "IP:127.0.0.1,DNS:localhost"
_AUTHORITY = """\
[ca]
default_ca = own
[own]
database = {folder}/index.txt
new_certs_dir = {folder}
serial = {folder}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""


def available() -> bool:
    """Whether openssl is installed."""
    return shutil.which("openssl") is not None


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, both PEM texts; the key is in PKCS #8, as Java reads it."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority that signs certificates."""

    folder: Path

    @property
    def ca(self) -> str:
        """Its own certificate, a PEM text."""
        return (self.folder / "ca.pem").read_text(encoding="ascii")

    def issue(self, name: str, names: str = LOOPBACK, *, expired: bool = False) -> Identity:
        """Sign a certificate.

        Args:
            name: its common name.
            names: the hosts that it is for, as openssl writes subjectAltName.
            expired: it was valid for a day of the year 2020.
        """
        folder = self.folder
        request, signed, key = (folder / f"{name}.{end}" for end in ("csr", "pem", "key"))
        _openssl(
            "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request
        )
        extensions = folder / f"{name}.cnf"
        extensions.write_text(f"subjectAltName={names}\n", encoding="ascii")
        days = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z") if expired else ("-days", "2")
        _openssl(
            "ca", "-batch", "-notext", "-config", folder / "openssl.cnf", "-cert", folder / "ca.pem", "-keyfile",
            folder / "ca.key", "-extfile", extensions, "-in", request, "-out", signed, *days,
        )  # fmt: skip
        return Identity(signed.read_text(encoding="ascii"), key.read_text(encoding="ascii"))

    def encrypted(self, name: str, password: str) -> str:
        """The key of a certificate that was issued, encrypted with a password."""
        done = _openssl("pkcs8", "-topk8", "-in", self.folder / f"{name}.key", "-passout", f"pass:{password}")
        return done.decode("ascii")


def authority(folder: Path, name: str = "authority") -> Authority:
    """Make an authority in a new folder."""
    folder.mkdir(parents=True)
    (folder / "openssl.cnf").write_text(_AUTHORITY.format(folder=folder), encoding="ascii")
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01\n", encoding="ascii")
    _openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
        "-addext", "keyUsage=critical,keyCertSign", "-keyout", folder / "ca.key", "-out", folder / "ca.pem",
    )  # fmt: skip
    return Authority(folder)


def _openssl(*arguments: str | Path) -> bytes:
    done = subprocess.run(["openssl", *map(str, arguments)], check=False, capture_output=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout
