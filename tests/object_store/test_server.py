"""What the S3-compatible server of the tests does, of all that the engine relies on."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import SetupError
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.object_store.s3_client import error_code, is_conflict, is_missing, s3_client, s3_errors
from tests.services.s3 import S3Server

pytestmark = pytest.mark.spark
PART = 5 * 1024 * 1024


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    return s3_server.start().bucket(f"b{uuid.uuid4().hex[:12]}")


def put(client: Any, bucket: str, key: str, body: bytes, **condition: str) -> str:
    """The code of the answer; empty: written."""
    from botocore.exceptions import ClientError

    try:
        client.put_object(Bucket=bucket, Key=key, Body=body, **condition)
    except ClientError as error:
        return error_code(error) if is_conflict(error) else str(error)
    return ""


def test_an_object_is_created_once_however_many_try(s3_server, bucket):
    client = s3_server.client()
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda number: put(client, bucket, "lease", b"%d" % number, IfNoneMatch="*"), range(16)))
    winner = codes.index("")
    assert codes.count("") == 1
    assert client.get_object(Bucket=bucket, Key="lease")["Body"].read() == b"%d" % winner


def test_parts_become_an_object_when_they_are_completed_and_nothing_when_they_are_not(s3_server, bucket):
    client = s3_server.client()
    where = {"Bucket": bucket, "Key": "folder/large"}
    for complete in (False, True):
        upload = client.create_multipart_upload(**where)["UploadId"]
        parts = [
            {
                "PartNumber": number,
                "ETag": client.upload_part(**where, UploadId=upload, PartNumber=number, Body=body)["ETag"],
            }
            for number, body in enumerate((b"a" * PART, b"b"), 1)
        ]
        assert s3_server.keys(bucket, "folder/") == []
        if complete:
            client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
        else:
            client.abort_multipart_upload(**where, UploadId=upload)
    assert s3_server.keys(bucket, "folder/") == ["folder/large"]
    assert client.head_object(**where)["ContentLength"] == PART + 1


def test_a_store_that_stops_is_unreachable_and_comes_back_with_what_it_held(s3_server, bucket):
    client = s3_server.client()
    put(client, bucket, "kept", b"1")
    s3_server.stop(kill=True)
    with pytest.raises(SetupError) as away, s3_errors(f"s3://{bucket}/kept"):
        client.get_object(Bucket=bucket, Key="kept")
    s3_server.start()
    assert away.value.diagnostic.code == "s3-unreachable"
    assert client.get_object(Bucket=bucket, Key="kept")["Body"].read() == b"1"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"secret_access_key": "wrong"}, "SignatureDoesNotMatch"),
        ({"access_key_id": "AKIANOBODY"}, "InvalidAccessKeyId"),
    ],
)
def test_a_wrong_login_is_denied_in_plain_words(s3_server, bucket, changed, code):
    client = s3_client(replace(s3_server.settings, **changed))
    with pytest.raises(SetupError) as denied, s3_errors(f"s3://{bucket}/x"):
        client.get_object(Bucket=bucket, Key="x")
    assert denied.value.diagnostic.code == "s3-denied"
    assert code in denied.value.diagnostic.message


def test_what_is_missing_is_told_from_what_failed(s3_server, bucket):
    from botocore.exceptions import ClientError

    client = s3_server.client()
    with pytest.raises(ClientError) as missing:
        client.head_object(Bucket=bucket, Key="nothing")
    assert is_missing(missing.value)
    with pytest.raises(SetupError) as no_bucket, s3_errors("s3://nowhere/"):
        client.list_objects_v2(Bucket="nowhere-at-all")
    assert no_bucket.value.diagnostic.code == "s3-missing"


def test_a_warehouse_is_asked_whether_it_answers(s3_server, bucket):
    known = s3_server.settings
    ObjectWarehouse(f"s3://{bucket}/lake", lambda: known).check()
    for location, settings, code in (
        ("s3://no-such-bucket/lake", known, "s3-missing"),
        (f"s3://{bucket}/lake", replace(known, secret_access_key="wrong"), "s3-denied"),
    ):
        with pytest.raises(SetupError) as failed:
            ObjectWarehouse(location, lambda settings=settings: settings).check()
        assert failed.value.diagnostic.code == code
