"""What each diagnostic means: Markdown files, one a topic, that the command line and the documentation show."""
