"""Java, the jars, the driver's JVM and the Spark session; PySpark is imported when a session starts."""

from engine.spark.jars import JarState, cache_dir, jar_paths, jar_sets, status
from engine.spark.java import Java, find_java
from engine.spark.jvm import Jvm, start_jvm
from engine.spark.session import Session, SessionSettings, open_session

__all__ = [
    "JarState",
    "Java",
    "Jvm",
    "Session",
    "SessionSettings",
    "cache_dir",
    "find_java",
    "jar_paths",
    "jar_sets",
    "open_session",
    "start_jvm",
    "status",
]
