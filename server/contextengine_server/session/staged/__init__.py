"""Sessions on their way in: seen by nobody until they are whole."""
