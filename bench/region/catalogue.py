"""A simulated cloud in which nothing takes time and everything fits."""

from remuda.providers.simulated.catalogue import SimCatalogue, parse_catalogues, without_delays

__all__ = ["CLOUD", "FLAVOR", "IMAGE", "TOML", "roomy"]

CLOUD = "bench"
"""What the cloud, and so its region, is called."""
FLAVOR = "11111111-1111-4111-8111-111111111111"
"""Its only flavor."""
IMAGE = "22222222-2222-4222-8222-222222222222"
"""Its only image."""

TOML = f"""
[times]
queue_s = 0.0
boot_s = 0.0

[[flavors]]
id = "{FLAVOR}"
name = "standard"
cpus = 4
memory_gib = 8
disk_gib = 100

[[images]]
id = "{IMAGE}"
name = "linux"
size_gib = 10
os = {{ kernel = "linux", family = "debian", distro = "ubuntu", version = "24.04" }}

[clouds.{CLOUD}.hosts]
standard = {{ count = 100, size = 100000 }}
"""
"""As a file of the configuration."""


def roomy() -> SimCatalogue:
    """Return what the cloud offers."""
    return without_delays(parse_catalogues(TOML)[CLOUD])
