"""What a project demands of all its instances."""
