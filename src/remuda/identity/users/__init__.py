"""Users, service accounts and the groups that bind them to roles."""
