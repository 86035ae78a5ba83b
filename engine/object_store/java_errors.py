"""Errors by which Java says that an object store was not there, or denied access.

The texts are those of the AWS SDK for Java 2.54, which Iceberg's S3FileIO and Hadoop's S3A pass on.
"""

from __future__ import annotations

import re
from typing import Final

_AWAY: Final = re.compile(
    r"Unable to execute HTTP request|Service: S3, Status Code: 5\d\d|Please reduce your request rate"
    r"|AWSClientIOException|the object store cut \S+ off"
)
_DENIED: Final = re.compile(
    r"Service: S3, Status Code: 40[13]\b|The provided token has expired"
    r"|Unable to load credentials from any of the providers|NoAuthWithAWSException|NoAwsCredentialsException"
)
_MISSING: Final = re.compile(r"NoSuchBucketException|UnknownStoreException|The specified bucket does not exist")


def is_store_outage(text: str) -> bool:
    return _AWAY.search(text) is not None and not is_store_denial(text)


def is_store_denial(text: str) -> bool:
    return _DENIED.search(text) is not None


def is_bucket_missing(text: str) -> bool:
    return _MISSING.search(text) is not None
