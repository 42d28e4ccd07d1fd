"""Experiments made of the layers below."""
