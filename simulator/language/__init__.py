"""A small causal language model of our own: tokens, computation, continuation of a text."""
