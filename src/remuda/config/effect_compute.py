"""What compute is told, made from the configuration."""

from remuda.compute.settings import ComputeSettings
from remuda.config.schema import Configuration


def compute_settings(configuration: Configuration, *, url: str) -> ComputeSettings:
    """Return what compute is told, in a process that clients reach at `url`."""
    told = configuration.compute
    return ComputeSettings(
        url=f"{url}/compute",
        identity_url=configuration.identity.issuer or f"{url}/identity",
        look_again=told.look_again,
        check_every=told.check_every,
        stuck_after=told.stuck_after,
    )
