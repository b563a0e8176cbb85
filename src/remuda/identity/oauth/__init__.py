"""OAuth2 and OpenID Connect."""
