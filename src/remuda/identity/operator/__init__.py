"""Break-glass: a token for whoever sits at the machine itself."""
