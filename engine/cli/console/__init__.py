"""What commands print: text, JSON lines, JUnit; all of it through `terminal`."""
