"""What several kinds of region have in common."""

from typing import Literal

from remuda.store.objects import StoredStruct

ProviderType = Literal["openstack", "kubernetes", "simulated"]
"""What sort of cloud something is on."""

Settling = Literal["Provisioning", "Provisioned", "Errored", "Deprovisioning"]
"""How far one part of a larger thing is."""


class IpRange(StoredStruct, frozen=True, rename={"start_ip": "startIP", "end_ip": "endIP"}):
    """IPv4 addresses in a row, both ends included."""

    start_ip: str
    end_ip: str
