"""What is known of tools by their names."""
