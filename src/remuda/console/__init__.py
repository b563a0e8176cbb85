"""Web console: a page that shows a user's instances live."""
