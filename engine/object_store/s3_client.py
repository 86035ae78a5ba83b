"""The AWS SDK for Python (botocore, of the extra `s3`), and what its errors mean for who runs a command.

Nothing here is imported where no object store is named: botocore takes a fifth of a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final

from engine.errors import SetupError
from engine.object_store.aws_client import aws_client
from engine.object_store.s3_settings import S3Settings

DENIED: Final = (
    "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
    "TokenRefreshRequired", "RequestTimeTooSkewed", "AllAccessDisabled", "401", "403",
)  # fmt: skip
# Of 1,000 names each.
MOST_PAGES: int = 5_000
_MISSING: Final = ("NoSuchKey", "404", "NotFound")
_CONFLICTS: Final = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")


@cache
def s3_client(settings: S3Settings) -> Any:
    """Return a client of the store: one for each settings, which threads may share.

    Raises:
        SetupError: `s3-client`: botocore is not installed, or the settings name nothing it can use.
    """
    return aws_client(settings)


def error_code(error: Exception) -> str:
    """Return the code of a store's answer (`NoSuchKey`); empty if there was none."""
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

    Raises:
        SetupError: `s3-denied`, `s3-unreachable` or `s3-missing`.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise explained(error, location) from error
    # What the SDK raises of an answer that is not one of a store's is of many kinds.
    except (ResponseParserError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise unreachable(location, f"its answer cannot be used ({type(error).__name__})") from error


def listing(client: Any, location: str, **asked: Any) -> Iterator[dict[str, Any]]:
    """Yield the pages of a listing; a store that lists without end, or something else, is an error.

    Raises:
        SetupError: `s3-denied`, `s3-unreachable` or `s3-missing`.
    """
    with s3_errors(location):
        for number, page in enumerate(client.get_paginator("list_objects_v2").paginate(**asked)):
            if number >= MOST_PAGES:
                raise unreachable(location, f"its listing has more than {MOST_PAGES:,} pages")
            folders = page.get("CommonPrefixes", ())
            named = all(isinstance(folder.get("Prefix"), str) for folder in folders)
            if not named or not all(_is_entry(entry) for entry in page.get("Contents", ())):
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
        what = "bucket" if code == "NoSuchBucket" else "object"
        hint = "Check its name, and 'endpoint' and 'region' in 's3:' of the target."
        return SetupError("s3-missing", f"there is no {what} {location}", hint)
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
    return SetupError("s3-unreachable", f"the object store of {location} does not answer: {reason}", hint)
