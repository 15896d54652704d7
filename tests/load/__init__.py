"""The load: ghz against a seeded server, and against a bare handler that returns the same bytes."""
