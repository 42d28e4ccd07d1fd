"""Credit schemes: a verified group in, per-token advantages out."""
