"""Access: the principal of a request and its permissions, and the checks that all services use."""
