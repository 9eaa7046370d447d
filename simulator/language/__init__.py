"""A small causal language model of our own: its tokens, what it computes, how it goes on."""
