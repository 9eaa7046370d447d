"""Ring attention: rows and keys dealt out to devices, whose K and V blocks travel a ring."""
