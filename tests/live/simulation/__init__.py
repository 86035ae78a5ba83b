"""Random schedules of `engine start` with a fake clock and executor, against an independent model of the truth."""
