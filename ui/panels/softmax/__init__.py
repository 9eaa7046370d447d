"""The online softmax of one row."""
