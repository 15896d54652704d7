"""What comes back to a session after a compaction."""
