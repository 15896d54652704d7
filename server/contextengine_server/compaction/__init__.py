"""Compaction: planned, summarized, committed, proposed, queued, taken back."""
