"""Real parts that tests and `make kafka` start: they live on the loopback interface only, on free ports."""
