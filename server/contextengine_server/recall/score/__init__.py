"""How well what was found matches: its words, what its neighbours lend it, and the dates named."""
