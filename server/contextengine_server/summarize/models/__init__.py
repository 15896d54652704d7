"""Summaries by models: of endpoints, and of harnesses that lend theirs."""
