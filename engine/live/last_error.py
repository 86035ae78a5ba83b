"""Which error of a node to name: the first of those that follow from each other, and none that is over."""

from __future__ import annotations

from dataclasses import dataclass

# An error that follows so soon on another one mostly comes of it: a disk is full, then the state cannot be written.
_ONE_CAUSE_SECONDS = 60.0


@dataclass(slots=True)
class LastError:
    """The error of a node.

    Attributes:
        message: of the error that its last turn failed with; empty: it did not fail.
        at: when that came last.
        past: the message of the last error that is over; empty: there was none.
        past_at: when it came last.
        first_at: when the error came for the first time.
    """

    message: str = ""
    at: float | None = None
    past: str = ""
    past_at: float | None = None
    first_at: float = 0.0

    def failed(self, message: str, at: float) -> None:
        """Take the error of a turn: another one within a minute of the first does not replace it."""
        if message != self.message and (not self.message or at - self.first_at > _ONE_CAUSE_SECONDS):
            self.message, self.first_at = message, at
        self.at = at

    def over(self) -> None:
        """Take a turn that did not fail."""
        if self.message:
            self.past, self.past_at = self.message, self.at
            self.message, self.at = "", None
