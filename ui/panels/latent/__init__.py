"""A latent in the place of keys and values: two ways to attend to it, and what sharing costs."""
