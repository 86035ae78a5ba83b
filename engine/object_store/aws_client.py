"""Clients of the AWS SDK for Python, whose answers have a deadline and a size.

The SDK's own limits count from one byte to the next, and an answer beside the objects of a bucket is read in full
whatever its size. Here both are limited: time for the headers and the body together, size for all but objects, which
their readers limit. Requests go to the endpoint and to names below it (buckets), whatever an answer says; where the
endpoint is AWS's own, to any host of AWS.
"""

from __future__ import annotations

import io
import time
from typing import Any, Final

from engine.addresses.servers import AddressError, Server
from engine.addresses.web_address import web_address
from engine.bounds.deadline import TimedReader, seconds_left
from engine.errors import SetupError
from engine.object_store.s3_settings import S3Settings
from engine.package_source import install_hint

# Seconds. A store that is away for longer is reported; who can wait for it asks again.
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 30
# Of an answer as a whole.
ANSWER_SECONDS: float = 120.0
# A page of a listing has 1,000 names of 1,024 bytes at most.
_MOST_BYTES: Final = 1 << 23
# A plan reads the state of so many models at a time.
_CONNECTIONS: Final = 32
ATTEMPTS: int = 4
_NO_SUCCESS: Final = 300
_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn")


def aws_client(settings: S3Settings) -> Any:
    """Return a client of an object store.

    Raises:
        SetupError: `s3-client`: botocore is not installed, or the settings name nothing it can use.
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
    own = next((end for end in _AMAZON if endpoint.host.endswith(end)), f".{endpoint.host}")
    return server.host == endpoint.host or server.host.endswith(own)


def _bound(client: Any, endpoint: Server) -> None:
    """Let the client's connections read answers until a deadline, and its session bound their size and destination."""
    from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
    from botocore.exceptions import HTTPClientError
    from urllib3.exceptions import HTTPError

    class Plain(AWSHTTPConnection):  # type: ignore[misc]
        response_class = staticmethod(_answer)

    class Tls(AWSHTTPSConnection):  # type: ignore[misc]
        response_class = staticmethod(_answer)

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
                response._content = _read(response.raw)  # noqa: SLF001
            except (OSError, HTTPError) as error:
                raise HTTPClientError(error=error) from error
        return response

    session.send = sized


def _answer(sock: Any, *args: Any, **also: Any) -> Any:
    from http.client import HTTPResponse

    response = HTTPResponse(sock, *args, **also)
    deadline = time.monotonic() + ANSWER_SECONDS
    response.fp.close()
    response.fp = io.BufferedReader(TimedReader(sock, lambda: seconds_left(_READ_SECONDS, deadline)))
    return response


def _read(raw: Any) -> bytes:
    content = bytearray()
    try:
        while chunk := raw.read(1 << 16):
            content += chunk
            if len(content) > _MOST_BYTES:
                raise OSError(f"its answer has more than {_MOST_BYTES:,} bytes")
    finally:
        if len(content) > _MOST_BYTES:
            raw.close()
        else:
            raw.release_conn()
    return bytes(content)
