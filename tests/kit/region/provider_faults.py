"""Fault rates of the simulated cloud for the tests of controllers."""

ILLS = {
    "cloud.error": 0.1,
    "cloud.error_after_write": 0.1,
    "cloud.timeout_after_write": 0.05,
    "cloud.stale": 0.2,
    "cloud.not_visible_yet": 0.2,
}
