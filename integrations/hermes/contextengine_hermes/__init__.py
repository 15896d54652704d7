"""contextengine as the context engine of Hermes Agent."""
