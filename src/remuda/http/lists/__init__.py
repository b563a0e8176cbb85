"""Lists: a collection of stored objects, whole, in pages, or watched as it changes."""
