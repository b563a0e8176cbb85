"""Providers: what does the work for real, and how it is called."""
