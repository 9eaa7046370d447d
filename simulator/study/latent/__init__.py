"""One latent a token for all heads: two ways to attend to it, and what it keeps of a layer."""
