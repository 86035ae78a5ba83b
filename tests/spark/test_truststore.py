import hashlib
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from engine.spark import truststore
from engine.spark.java import find_java
from engine.spark.truststore import PASSWORD, trust_store_options, trusted_certificates, write_trust_store

# A self-signed authority made for this test (EC key thrown away), valid until 2126.
AUTHORITY = (Path(__file__).with_name("authority.pem")).read_text()


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "bundle.pem"
    path.write_text(f"# a comment\n{AUTHORITY}")
    return path


@pytest.fixture
def no_system_bundle(monkeypatch):
    monkeypatch.setattr(truststore, "_SYSTEM_BUNDLES", ())
    nothing = ssl.get_default_verify_paths()._replace(cafile=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nothing)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"])
def test_the_bundle_that_python_uses(bundle, variable):
    assert trusted_certificates({variable: str(bundle)}) == (ssl.PEM_cert_to_DER_cert(AUTHORITY),)


def test_a_broken_bundle_is_passed_over(tmp_path, bundle):
    (tmp_path / "broken.pem").write_text("not a certificate")
    env = {"SSL_CERT_FILE": str(tmp_path / "broken.pem"), "PIP_CERT": str(bundle)}
    assert len(trusted_certificates(env)) == 1


def test_without_a_bundle_java_keeps_its_own(tmp_path, no_system_bundle):
    assert trust_store_options(tmp_path / "trust.jks", {}) == []
    assert not (tmp_path / "trust.jks").exists()


def test_the_seal_covers_the_content(tmp_path):
    write_trust_store(tmp_path / "t.jks", [b"der"])
    raw = (tmp_path / "t.jks").read_bytes()
    seal = hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + raw[:-20]).digest()
    assert raw[:4].hex() == "feedfeed"
    assert raw[-20:] == seal


@pytest.mark.spark
def test_java_reads_the_file(tmp_path, bundle):
    keytool = find_java().home / "bin" / "keytool"
    tool = str(keytool) if keytool.exists() else shutil.which("keytool")
    assert tool, "no keytool beside this Java"
    options = trust_store_options(tmp_path / "trust.jks", {"SSL_CERT_FILE": str(bundle)})
    assert f"-Djavax.net.ssl.trustStore={tmp_path / 'trust.jks'}" in options
    command = [tool, "-J-Duser.language=en", "-list", "-keystore", str(tmp_path / "trust.jks"), "-storepass"]
    good = subprocess.run([*command, PASSWORD], capture_output=True, text=True, check=False)
    fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(AUTHORITY)).hexdigest().upper()
    assert good.returncode == 0, good.stdout
    assert "1 entry" in good.stdout
    assert "trustedCertEntry" in good.stdout
    assert ":".join(fingerprint[i : i + 2] for i in range(0, 64, 2)) in good.stdout
    bad = subprocess.run([*command, "another"], capture_output=True, text=True, check=False)
    assert bad.returncode != 0
