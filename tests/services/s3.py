"""A real S3-compatible object store in a process of its own: S3Proxy over a folder, from its locked jar.

It checks signatures (version 4) of one login. What it does not do: versions of objects, policies, a list of events.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.object_store.s3_client import s3_client
from engine.object_store.s3_settings import S3Settings
from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from tests.services import process

LOCK = Path(__file__).with_name("jars.json")
REGION = "us-east-1"
_START_SECONDS = 60.0
_CALL_SECONDS = 5.0
_CONFIGURATION = """\
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.authorization=aws-v4
s3proxy.identity={identity}
s3proxy.credential={credential}
jclouds.identity=unused
jclouds.credential=unused
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={folder}/objects
"""


@dataclass(slots=True)
class S3Server(process.Service):
    """A store over a folder; it can be stopped and started again, with what it holds.

    Attributes:
        folder: of its objects, settings and log.
        port: on the loopback interface.
        access_key_id: of the one login.
        secret_access_key: of the one login.
    """

    folder: Path
    port: int = field(default_factory=process.free_port)
    access_key_id: str = field(default_factory=lambda: f"AKIA{secrets.token_hex(8).upper()}")
    secret_access_key: str = field(default_factory=lambda: secrets.token_urlsafe(30))

    @property
    def endpoint(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> S3Settings:
        """What a client needs to log in."""
        return S3Settings(self.endpoint, REGION, self.access_key_id, self.secret_access_key, path_style_access=True)

    def block(self, **changed: str) -> dict[str, Any]:
        """The block `s3:` of a target."""
        return {
            "endpoint": self.endpoint, "region": REGION, "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key, "path_style_access": True, **changed,
        }  # fmt: skip

    def client(self) -> Any:
        """A client of the AWS SDK for Python."""
        return s3_client(self.settings)

    def bucket(self, name: str) -> str:
        """Make a bucket, and return its name."""
        self.client().create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """The names of all objects below a prefix."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def start(self) -> S3Server:
        """Start it, and wait until it answers."""
        if self.running:
            return self
        (self.folder / "objects").mkdir(parents=True, exist_ok=True)
        settings = self.folder / "s3proxy.conf"
        login = {"identity": self.access_key_id, "credential": self.secret_access_key}
        settings.write_text(_CONFIGURATION.format(port=self.port, folder=self.folder, **login), encoding="utf-8")
        jars = jar_paths(["s3proxy"], fetch=True, java=None, lock=LOCK)
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", ":".join(map(str, jars))]
        command = [str(find_java().path), *options, "org.gaul.s3proxy.Main", "--properties", str(settings)]
        self._process = process.start(command, self.folder / "log.txt", self.folder)
        process.wait_until_ready(self._process, self._ready, self.folder / "log.txt", _START_SECONDS)
        return self

    def _ready(self) -> bool:
        try:
            urllib.request.urlopen(self.endpoint, timeout=_CALL_SECONDS).close()
        except urllib.error.HTTPError as error:
            # Nobody has logged in.
            error.close()
            return True
        except OSError:
            return False
        return True


@contextlib.contextmanager
def running() -> Iterator[S3Server]:
    """A store that ends with the block, with all its objects."""
    folder = Path(tempfile.mkdtemp(prefix="s3-"))
    server = S3Server(folder)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
