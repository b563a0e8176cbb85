"""The region service: networks, servers and what they stand on."""
