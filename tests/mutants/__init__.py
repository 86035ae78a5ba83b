"""Small faults put into the engine on purpose: tests that do not notice one cannot fail for it."""
