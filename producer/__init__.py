"""Replays the flights that left New York in 2013 as CloudEvents: the example's source of data."""
