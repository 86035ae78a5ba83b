"""Projects whose tables, or sources, are in a real S3-compatible store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from engine.compile import Catalog
from engine.compile.declarations.s3_config import ObjectStoreConfig
from engine.lake.clients import catalog_client
from engine.object_store.s3_settings import hadoop_conf
from tests.catalogs.conftest import CatalogLab
from tests.lab import JAVA_OPTIONS, LabSession, share_session

if TYPE_CHECKING:
    from tests.services.s3 import S3Server

SECRETS = ("ENGINE_SECRET_S3_ID", "ENGINE_SECRET_S3_KEY")


@dataclass(slots=True)
class StoreLab(CatalogLab):
    """A project with a target in the store, which has a bucket of its own.

    Attributes:
        server: the store.
        bucket: in it.
    """

    server: S3Server | None = None
    bucket: str = ""

    def __post_init__(self) -> None:
        CatalogLab.__post_init__(self)
        if self.session is not None and self.server is not None:
            for name, value in hadoop_conf(self.server.settings).items():
                key = name.removeprefix("spark.hadoop.")
                self.session.spark._jsc.hadoopConfiguration().set(key, value)

    def retarget(self, written: str, **store: Any) -> None:
        """Write the project; the login is in two secrets."""
        assert self.server is not None
        login = {"access_key_id": SECRETS[0], "secret_access_key": SECRETS[1]}
        block = self.server.block(**{key: f"{{{{ env_var('{name}') }}}}" for key, name in login.items()}, **store)
        target = {
            "catalog": yaml.safe_load(written),
            "schema": self.schema,
            "s3": block,
            "spark": {"master": "local[2]", "conf": {"spark.driver.extraJavaOptions": JAVA_OPTIONS}},
        }
        self.write("project.yml", yaml.safe_dump({"name": "lab", "targets": {"dev": target}}))


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of the test, and the login in the environment."""
    monkeypatch.setenv(SECRETS[0], s3_server.access_key_id)
    monkeypatch.setenv(SECRETS[1], s3_server.secret_access_key)
    return s3_server.start().bucket(f"b{uuid.uuid4().hex[:12]}")


@pytest.fixture
def stored(
    s3_server: S3Server, bucket: str, lab_session: LabSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[StoreLab]:
    """A project whose catalog is a file of this machine, and whose tables are in the store."""
    lake, files = tmp_path / "lake", f"s3://{bucket}/warehouse"
    name = f"lake{uuid.uuid4().hex[:8]}"
    given = s3_server.settings
    store = ObjectStoreConfig({
        "endpoint": s3_server.endpoint, "region": given.region or "", "access_key_id": s3_server.access_key_id,
        "secret_access_key": s3_server.secret_access_key, "path_style_access": "true",
    })  # fmt: skip
    catalog = Catalog("sqlite", name, lake, objects=files, store=store)
    written = yaml.safe_dump({"type": "sqlite", "name": name, "path": str(lake), "warehouse": files})
    with share_session(lab_session):
        yield StoreLab(tmp_path, lab_session, capsys, catalog=catalog, written=written, server=s3_server, bucket=bucket)


@pytest.fixture
def landing(
    s3_server: S3Server, bucket: str, lab_session: LabSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[StoreLab]:
    """A project whose tables are on this machine, and whose sources are in the store."""
    name = f"lake{uuid.uuid4().hex[:8]}"
    catalog = Catalog("sqlite", name, tmp_path / "lake")
    written = yaml.safe_dump({"type": "sqlite", "name": name, "path": str(tmp_path / "lake")})
    with share_session(lab_session):
        yield StoreLab(tmp_path, lab_session, capsys, catalog=catalog, written=written, server=s3_server, bucket=bucket)


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process keeps its clients; a test has those of its own."""
    monkeypatch.setattr(catalog_client, "_clients", {})
