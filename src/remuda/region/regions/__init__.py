"""Regions as objects that platform administrators create, update, disable and remove."""
