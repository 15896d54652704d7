"""What belongs to agents, and outlives sessions."""
