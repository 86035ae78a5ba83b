"""How Spark and Java fail."""

from __future__ import annotations


def spark_exceptions() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, ConnectionError)


def error_text(error: BaseException) -> str:
    """What an exception says; one of Java's cannot be asked any more when Java has ended."""
    try:
        return str(error)
    except spark_exceptions():
        return "Java has ended"
