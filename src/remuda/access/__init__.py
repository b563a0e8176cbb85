"""Who asks, and what they may do: the values and the checks that every service and every port share."""
