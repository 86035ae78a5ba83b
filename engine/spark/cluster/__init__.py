"""Spark where its executors are other processes than the driver."""
