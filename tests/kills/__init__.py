"""kill -9 again and again over the example project (`python -m tests.kills --kills 50 --seed 1`)."""
