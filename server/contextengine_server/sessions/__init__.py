"""The one place where a session changes: addressing, order, revision, cache, assembly, compaction,
background work, events."""
