"""Networks, their hidden identities, and how their addresses are divided and handed out."""
