"""Training of the small language model in assets/language: `make sentence-model`."""
