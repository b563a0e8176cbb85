"""Ends of things in other services that are ends of things here."""
