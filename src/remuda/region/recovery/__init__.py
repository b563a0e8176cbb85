"""What an operator can do where a controller cannot go on by itself: retry, abandon, adopt, forget."""
