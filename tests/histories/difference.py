"""What a history ends with that shows a fault of the engine."""


class DifferenceError(Exception):
    """The engine did something else than it should have; the text says what."""
