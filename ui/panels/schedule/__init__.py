"""Thread blocks on the multiprocessors of a GPU: a model, and traces to set beside it."""
