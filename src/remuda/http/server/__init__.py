"""HTTP server: connections and their limits, the access log, metrics, their exposition, and health."""
