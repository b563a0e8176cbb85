"""Networks, their hidden identities, and the allocation of their prefixes and addresses."""
