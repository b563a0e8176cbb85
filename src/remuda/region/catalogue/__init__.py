"""Catalogue: regions, their providers, and the flavors and external networks that these offer."""
