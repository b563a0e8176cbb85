"""HTTP server: connections and their limits, the access log, metrics and health."""
