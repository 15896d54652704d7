"""Sessions on their way into a store."""
