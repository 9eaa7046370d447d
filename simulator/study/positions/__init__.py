"""How positions enter scores: one vector at all places, a shift of them all, long distances."""
