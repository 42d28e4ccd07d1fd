"""Tokenizer, model, log-probs: everything that touches transformers."""
