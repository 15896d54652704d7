"""The bench: this server against a bare handler that returns the same bytes, under the same load,
in turns."""
