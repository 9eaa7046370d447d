"""Which thread block runs on which multiprocessor when: a model from the counts of the ops."""
