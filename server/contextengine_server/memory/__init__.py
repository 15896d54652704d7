"""Facts of an agent that outlive its sessions (docs/memory.md)."""
