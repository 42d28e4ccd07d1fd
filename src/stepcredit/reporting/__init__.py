"""Tables, claims, figures, report."""
