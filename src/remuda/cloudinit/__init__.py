"""User data in the formats of cloud-init: recognition, parsing and validation.

Pure, and below every service, because independent packages need it: services validate user data, and the simulated
cloud applies it when a server boots.
"""
