"""Where the algorithms stand under the roofs of a GPU."""
