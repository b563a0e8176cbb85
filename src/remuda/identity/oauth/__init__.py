"""OAuth2 and OpenID Connect: how people, devices, services and clients come by tokens."""
