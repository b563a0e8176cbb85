"""Servers, their verbs and their user data."""
