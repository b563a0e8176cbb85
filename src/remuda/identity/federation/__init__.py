"""External OpenID providers: logins and bearer tokens."""
