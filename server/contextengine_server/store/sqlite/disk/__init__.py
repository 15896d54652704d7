"""What stands on the disk: how the log comes into the file, what is overwritten, and what is given
back."""
