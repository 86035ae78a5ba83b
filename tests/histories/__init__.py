"""Random histories of small projects, compared with a batch computation (`python -m tests.histories --count 100 --seed 1`)."""
