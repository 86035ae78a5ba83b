"""Commands about models that are kept running."""
