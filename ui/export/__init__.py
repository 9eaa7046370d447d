"""Pictures of the scene, written to files."""
