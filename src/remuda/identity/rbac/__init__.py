"""Roles, and what they add up to for one caller."""
