"""Other OpenID providers: whose logins we take over, and whose tokens we believe."""
