"""Boxes that pictures are made of: they find their places, paint, and know what is at a point."""
