"""What model calls use: what they cost, what the prompt cache saved, and what may still be
spent."""
