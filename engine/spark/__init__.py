"""Java, the locked jars, the driver's JVM and the Spark session; PySpark is imported when a session starts.

In: `SessionSettings`; out: a `Session`. Read `session` first, then `jvm` and `_command` (how Java starts), `jars` and
`archive` (what it loads). `internals` holds all that is used of PySpark and Spark below their public interfaces.
"""
