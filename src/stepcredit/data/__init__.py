"""From a source of demonstrations to clean, split data."""
