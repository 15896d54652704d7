"""What is searched, and how."""
