"""The catalogue room: regions and who sees them, what their clouds offer, and the clouds themselves for other rooms."""
