"""Codex: developer instructions, a turn's text, items to inject, and what the harness does with its
native thread."""
