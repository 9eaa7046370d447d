"""The board: the matrices of one head, its layout, painters, words and widget."""
