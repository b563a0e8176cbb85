"""SSH certificate authorities: whose certificates a server's users may log in with."""
