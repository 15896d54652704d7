"""Who is asked for a summary, one after the other, and the note at the end of the chain."""
