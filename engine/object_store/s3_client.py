"""The AWS SDK for Python (botocore, of the extra `s3`), and what its errors mean for who runs a command.

Nothing here is imported where no object store is named: botocore takes a fifth of a second.

Clients of the AWS SDK for Python, whose answers have a deadline and a size.

The SDK's own limits count from one byte to the next, and an answer beside the objects of a bucket is read in full
whatever its size. Here both are limited: time for the headers and the body together, size for all but objects, which
their readers limit. Requests go to the endpoint and to names below it (buckets), whatever an answer says; where the
endpoint is AWS's own, to any host of AWS.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final

from engine.addresses import AddressError, Server, web_address
from engine.bounds.http_exchange import TimedReader, seconds_left
from engine.errors import SetupError
from engine.object_store.s3_settings import S3Settings
from engine.package_source import install_hint

# Seconds. A store that is away for longer is reported; who can wait for it asks again.
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 30
# Of an answer as a whole.
ANSWER_SECONDS: float = 120.0
# A page of a listing has 1,000 names of 1,024 bytes at most.
_MAX_BYTES: Final = 1 << 23
# A plan reads the state of so many models at a time.
_CONNECTIONS: Final = 32
ATTEMPTS: int = 4
_NO_SUCCESS: Final = 300
_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn")


def aws_client(settings: S3Settings) -> Any:
    """Return a client of an object store.

    Raises SetupError: `s3-client`: botocore is not installed, or the settings name nothing it can use.
    """
    try:
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        message = "the Python package botocore is not installed"
        raise SetupError("s3-client", message, install_hint("s3")) from error
    addressing = {None: "auto", True: "path", False: "virtual"}[settings.path_style_access]
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=_CONNECTIONS,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        s3={"addressing_style": addressing},
        # Stores that are not AWS's need not know its newer sums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        client = botocore.session.Session().create_client(
            "s3",
            region_name=settings.region,
            endpoint_url=settings.endpoint,
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            aws_session_token=settings.session_token,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        hint = "Check 's3:' of the target: endpoint, region, access_key_id, secret_access_key."
        raise SetupError("s3-client", f"the object store cannot be used: {error}", hint) from error
    _bound(client, _endpoint(settings.endpoint or client.meta.endpoint_url))
    return client


def _endpoint(text: str) -> Server:
    """Return the server of an endpoint; raise SetupError (`s3-client`) if it is none."""
    try:
        return web_address(text).server
    except AddressError as error:
        hint = "Write endpoint: https://<host>:<port> in 's3:' of the target."
        raise SetupError("s3-client", f"the object store cannot be used: its endpoint {error}", hint) from error


def _is_at(address: str, endpoint: Server) -> bool:
    """Whether a request goes to an endpoint, or to a name below it; of AWS's own to any of AWS's."""
    try:
        server = web_address(address).server
    except AddressError:
        return False
    if (server.scheme, server.port) != (endpoint.scheme, endpoint.port):
        return False
    domain = next((end for end in _AMAZON if endpoint.host.endswith(end)), f".{endpoint.host}")
    return server.host == endpoint.host or server.host.endswith(domain)


def _bound(client: Any, endpoint: Server) -> None:
    """Let the client's connections read answers until a deadline, and its session bound their size and destination."""
    from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
    from botocore.exceptions import HTTPClientError
    from urllib3.exceptions import HTTPError

    class Plain(AWSHTTPConnection):  # type: ignore[misc]
        response_class = staticmethod(_timed_response)

    class Tls(AWSHTTPSConnection):  # type: ignore[misc]
        response_class = staticmethod(_timed_response)

    class PlainPool(AWSHTTPConnectionPool):  # type: ignore[misc]
        ConnectionCls = Plain

    class TlsPool(AWSHTTPSConnectionPool):  # type: ignore[misc]
        ConnectionCls = Tls

    # The SDK has no public way to its connections; its version is pinned.
    session = client._endpoint.http_session  # noqa: SLF001
    session._pool_classes_by_scheme.update(http=PlainPool, https=TlsPool)  # noqa: SLF001
    send = session.send

    def sized(request: Any) -> Any:
        place = request.url.partition("?")[0]
        if not _is_at("/".join(place.split("/", 3)[:3]), endpoint):
            raise HTTPClientError(error=OSError("a request would be sent to another server than the endpoint"))
        streams = request.stream_output
        request.stream_output = True
        response = send(request)
        request.stream_output = streams
        # The SDK reads the answer of an error itself, also where an object would be streamed.
        if not streams or response.status_code >= _NO_SUCCESS:
            try:
                response._content = _read_answer(response.raw)  # noqa: SLF001
            except (OSError, HTTPError) as error:
                raise HTTPClientError(error=error) from error
        return response

    session.send = sized


def _timed_response(sock: Any, *args: Any, **also: Any) -> Any:
    from http.client import HTTPResponse

    response = HTTPResponse(sock, *args, **also)
    deadline = time.monotonic() + ANSWER_SECONDS
    response.fp.close()
    response.fp = io.BufferedReader(TimedReader(sock, lambda: seconds_left(_READ_SECONDS, deadline)))
    return response


def _read_answer(raw: Any) -> bytes:
    content = bytearray()
    try:
        while chunk := raw.read(1 << 16):
            content += chunk
            if len(content) > _MAX_BYTES:
                raise OSError(f"its response has more than {_MAX_BYTES:,} bytes")
    finally:
        if len(content) > _MAX_BYTES:
            raw.close()
        else:
            raw.release_conn()
    return bytes(content)


DENIED: Final = (
    "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
    "TokenRefreshRequired", "RequestTimeTooSkewed", "AllAccessDisabled", "401", "403",
)  # fmt: skip
# Of 1,000 names each.
MAX_PAGES: int = 5_000
_MISSING: Final = ("NoSuchKey", "404", "NotFound")
_CONFLICTS: Final = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")


@cache
def s3_client(settings: S3Settings) -> Any:
    """Return a client of the store: one for each settings, which threads may share.

    Raises SetupError: `s3-client`: botocore is not installed, or the settings name nothing it can use.
    """
    return aws_client(settings)


def error_code(error: Exception) -> str:
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def is_missing(error: Exception) -> bool:
    """Return whether an error says that there is no such object; a bucket that is missing is another error."""
    return error_code(error) in _MISSING


def is_conflict(error: Exception) -> bool:
    """Return whether an error says that the condition of a write does not hold: the object is there already, say."""
    return error_code(error) in _CONFLICTS


@contextmanager
def s3_errors(location: str) -> Iterator[None]:
    """Turn what the client raises in a block into an error with a place and a fix.

    Raises SetupError: `s3-denied`, `s3-unreachable` or `s3-missing`.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise explained(error, location) from error
    # What the SDK raises of an answer that is not one of a store's is of many kinds.
    except (ResponseParserError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise unreachable(location, f"its response cannot be used ({type(error).__name__})") from error


def listing(client: Any, location: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    """Yield the pages of a listing; a store that lists without end, or something else, is an error.

    Raises SetupError: `s3-denied`, `s3-unreachable` or `s3-missing`.
    """
    with s3_errors(location):
        for number, page in enumerate(client.get_paginator("list_objects_v2").paginate(**parameters)):
            if number >= MAX_PAGES:
                raise unreachable(location, f"its listing has more than {MAX_PAGES:,} pages")
            folders = page.get("CommonPrefixes", ())
            have_names = all(isinstance(folder.get("Prefix"), str) for folder in folders)
            if not have_names or not all(_is_entry(entry) for entry in page.get("Contents", ())):
                raise unreachable(location, "its listing cannot be used")
            yield page


def _is_entry(entry: Any) -> bool:
    kinds = (("Key", str), ("Size", int), ("LastModified", datetime))
    return all(isinstance(entry.get(name), kind) for name, kind in kinds)


def explained(error: Exception, location: str) -> SetupError:
    from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError

    code = error_code(error)
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        message = f"there is no login for the object store of {location}"
        return SetupError("s3-denied", message, _LOGIN)
    if code in DENIED:
        return denied(location, f"{code}: {error.response['Error'].get('Message') or 'no reason given'}")  # type: ignore[attr-defined]
    if code in {"NoSuchBucket", *_MISSING}:
        missing_kind = "bucket" if code == "NoSuchBucket" else "object"
        hint = "Check its name, and 'endpoint' and 'region' in 's3:' of the target."
        return SetupError("s3-missing", f"there is no {missing_kind} {location}", hint)
    reason = str(error) if not isinstance(error, ClientError) else f"{code}: {error}"
    return unreachable(location, reason)


_LOGIN: Final = (
    "Set access_key_id and secret_access_key in 's3:' of the target, or log in as the AWS SDK expects it "
    "(AWS_ACCESS_KEY_ID, AWS_PROFILE, a role of the machine)."
)


def denied(location: str, reason: str) -> SetupError:
    hint = (
        "Renew the login in 's3:' of the target (access_key_id, secret_access_key, session_token), and check that it "
        "may list, read, write and delete there."
    )
    return SetupError("s3-denied", f"the object store denies access to {location}: {reason}", hint)


def unreachable(location: str, reason: str) -> SetupError:
    hint = "Check the network and 'endpoint' in 's3:' of the target, and run the command again: it resumes."
    return SetupError("s3-unreachable", f"the object store of {location} does not respond: {reason}", hint)
