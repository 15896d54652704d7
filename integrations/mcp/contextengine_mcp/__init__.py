"""contextengine for hosts that speak MCP: the tools by which a model finds what its context does
not show, and hooks that record the turns of Codex and Claude Code."""
