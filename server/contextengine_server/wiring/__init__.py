"""How the rooms are put together: the core, the commands over it, the servicers over these."""
