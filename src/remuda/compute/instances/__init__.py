"""Instances: made, changed, given up, and worked with."""
