"""Faults of the object store that has the state: every request of a build in turn, and a machine that sleeps at it."""
