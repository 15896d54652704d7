"""What every store that speaks SQL shares: the tables and their migrations, the statements, and how
rows become columns and columns rows."""
