"""The tags by which the compute service knows its own servers and images. Nobody else may write them."""

RESERVED = ("compute.unikorn-cloud.org/", "compute.unikorn-cloud.org:")
"""What begins like this is ours."""
INSTANCE = "compute.unikorn-cloud.org/instance-id"
"""On a server: the instance that it does the work of."""
INCARNATION = "compute.unikorn-cloud.org/instance-uid"
"""On a server: which of the instances that have had this id."""
PROVENANCE = "compute.unikorn-cloud.org:instance-id"
"""On an image: the instance that it is a snapshot of."""
