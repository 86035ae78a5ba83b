"""The project that an editor has open, and what a place of it means."""
