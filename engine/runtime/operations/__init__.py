"""Commands that look or clean up: maintain, freshness, lag, inspect, preview, debug."""
