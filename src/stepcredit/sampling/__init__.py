"""Samplers: tokens out, weights in."""
