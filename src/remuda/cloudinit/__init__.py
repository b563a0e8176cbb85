"""User data as cloud-init reads it: which formats there are, what a message's parts say, and what is taken.

Pure, and below everything else, because some who do not know each other need it: the services, which check user data
before they take it, and the simulated cloud, whose servers apply it when they boot.
"""
