"""The store's benchmark."""
