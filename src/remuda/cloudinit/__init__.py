"""User data as cloud-init reads it: which formats there are, and what a message's parts say.

Pure, and below everything else, because two who do not know each other need it: the region service, which checks user
data before it takes it, and the simulated cloud, whose servers apply it when they boot.
"""
