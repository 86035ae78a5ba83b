"""What two snapshots of a table differ by, and replacing a part of its files."""
