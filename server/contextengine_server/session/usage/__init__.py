"""What a session's model calls take: counted, priced, and kept within bounds."""
