"""The calls of operators on sessions: list, move, erase, watch."""
