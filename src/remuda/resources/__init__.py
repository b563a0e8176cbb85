"""What the resources of every service have in common: their labels, their metadata on the wire, how a write is made."""
