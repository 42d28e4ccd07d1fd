"""Scorers: log-likelihoods of answers given a prefix of the reasoning."""
