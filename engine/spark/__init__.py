"""Java, the jars, the driver's JVM and the Spark session; PySpark is imported when a session starts."""
