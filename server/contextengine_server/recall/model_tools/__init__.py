"""What a model reads of the tools of recall, and what it is answered with."""
