"""What comes back behind the summaries after a compaction, and what a subagent is to keep in
sight."""
