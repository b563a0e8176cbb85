"""OAuth 2.0 and OpenID Connect endpoints for clients, devices and services."""
