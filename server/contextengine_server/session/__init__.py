"""The session as an aggregate: its head, its view in memory, and how both change together."""
