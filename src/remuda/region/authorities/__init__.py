"""SSH certificate authorities: servers accept the user certificates that they sign."""
