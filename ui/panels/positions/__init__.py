"""How positions enter scores."""
