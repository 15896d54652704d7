"""Settings of what belongs to agents: their children, and what they remember."""
