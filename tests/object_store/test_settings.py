"""One block of a target as the settings of each client; what is wrong in it; where its secrets may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.object_store import s3_settings
from engine.object_store.s3_settings import S3Settings, bucket_and_key, is_s3
from tests.project.small_projects import compiled

ENV = {
    "ENGINE_SECRET_ID": "AKIAplantedplanted",
    "ENGINE_SECRET_KEY": "planted-secret-key",
    "ENGINE_SECRET_TOKEN": "planted-token",
}
LOGIN = {
    "access_key_id": "{{ env_var('ENGINE_SECRET_ID') }}",
    "secret_access_key": "{{ env_var('ENGINE_SECRET_KEY') }}",
    "session_token": "{{ env_var('ENGINE_SECRET_TOKEN') }}",
}
STORE = {"endpoint": "https://store.example:9000", "region": "eu-west-1", "path_style_access": True}


def result(root: Path, block: dict[str, Any], env: dict[str, str] | None = None) -> Any:
    target = json.dumps({"schema": "a", "s3": block})
    files = {"project.yml": f"name: shop\ntargets:\n  dev: {target}\n", "models/m.sql": "select 1 as id\n"}
    return compiled(root, files, env=ENV if env is None else env)


def test_each_client_gets_its_own_names(tmp_path):
    settings = result(tmp_path, {**STORE, **LOGIN}).target.s3()
    assert s3_settings.hadoop_conf(settings) == {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
        "spark.hadoop.fs.s3a.endpoint": "https://store.example:9000",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
        "spark.hadoop.fs.s3a.access.key": "AKIAplantedplanted",
        "spark.hadoop.fs.s3a.secret.key": "planted-secret-key",
        "spark.hadoop.fs.s3a.session.token": "planted-token",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "true",
    }
    shared = {
        "s3.endpoint": "https://store.example:9000",
        "s3.access-key-id": "AKIAplantedplanted",
        "s3.secret-access-key": "planted-secret-key",
        "s3.session-token": "planted-token",
    }
    iceberg = {**shared, "client.region": "eu-west-1", "s3.path-style-access": "true"}
    assert s3_settings.iceberg_properties(settings) == iceberg
    pyiceberg = {**shared, "s3.region": "eu-west-1", "s3.force-virtual-addressing": "false"}
    assert s3_settings.pyiceberg_properties(settings) == pyiceberg


def test_without_a_login_the_chain_of_the_sdk_is_used(tmp_path):
    settings = result(tmp_path, {}).target.s3()
    assert settings == S3Settings()
    assert s3_settings.hadoop_conf(settings) == {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        ),
    }
    assert s3_settings.iceberg_properties(settings) == s3_settings.pyiceberg_properties(settings) == {}


@pytest.mark.slow
def test_no_secret_is_read_before_it_is_used_nor_shown(tmp_path):
    target = result(tmp_path, LOGIN, env={}).target
    assert "planted" not in repr(result(tmp_path / "b", LOGIN).target.s3())
    with pytest.raises(Exception, match="ENGINE_SECRET_ID"):
        target.s3()


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ({"access_key_id": "a"}, "missing-key: 's3' has 'access_key_id' and no 'secret_access_key'"),
        ({"session_token": "a"}, "missing-key: 's3' has 'session_token' and no 'access_key_id'"),
        ({"endpoint": "store:9000"}, "bad-value: 'endpoint' does not begin with http:// or https://"),
        ({"endpoint": "https://me:word@store"}, "bad-value: 'endpoint' contains a login, and it is shown in messages"),
        ({"bucket": "b"}, "unknown-key: s3 has no key 'bucket'"),
        ({"path_style_access": "perhaps"}, "wrong-type: 'path_style_access' must be true or false, not 'perhaps'"),
        (
            {"endpoint": "https://{{ env_var('ENGINE_SECRET_ID') }}"},
            "secret-misplaced: the secret 'ENGINE_SECRET_ID' would be readable in 'endpoint'",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_is_wrong_is_reported(tmp_path, block, found):
    errors = [f"{error.code}: {error.message}" for error in result(tmp_path, block).manifest.errors]
    assert errors[:1] == [found]


def test_an_unencrypted_endpoint_beyond_this_machine_is_a_warning(tmp_path):
    def warned(folder: str, endpoint: str) -> list[str]:
        found = result(tmp_path / folder, {"endpoint": endpoint})
        assert found.manifest.errors == ()
        return [one.code for one in found.manifest.diagnostics if one.code == "plain-http"]

    assert warned("a", "http://store.example:9000") == ["plain-http"]
    assert warned("b", "http://127.0.0.1:9000") == []


def test_locations_are_taken_apart():
    assert bucket_and_key("s3a://bucket/folder/a b") == ("bucket", "folder/a b")
    assert bucket_and_key("s3://bucket") == ("bucket", "")
    assert [is_s3(one) for one in ("s3://b/x", "S3A://b", "file:///x", "/x", "gs://b")] == [
        True,
        True,
        False,
        False,
        False,
    ]
