"""What installed packages bring along: their entry points, added to the tables of our own."""
