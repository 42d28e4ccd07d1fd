"""What was made, from what, by which code."""
