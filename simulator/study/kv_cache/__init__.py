"""The size of a cache, the GPUs that hold it, and the loss if it keeps few tokens or few bits."""
