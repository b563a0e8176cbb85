"""Who did what, for those who may ask."""
