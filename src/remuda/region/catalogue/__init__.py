"""Catalogue: regions with their providers, flavors and external networks."""
