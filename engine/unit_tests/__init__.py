"""Unit tests of models, including event time: the model's own query and writer run over given rows, step by step.

In go a compiled project and a unit test; out comes a verdict with the rows that differ and their likely causes. Start
reading in `run_unit_test`.
"""
