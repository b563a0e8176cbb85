"""Schema of the configuration: every setting with its type, default and description."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from remuda.compute.settings import ComputeSettings
from remuda.config.fields import (
    About,
    Section,
    Setting,
    is_email,
    is_gpu_vendor,
    is_name,
    is_network,
    is_organization,
    is_origin,
    is_percentage,
    is_positive,
    is_provider_type,
    is_some,
    is_url,
    is_uuid,
    is_vlan,
    settings_of,
)
from remuda.http.server.server import Address
from remuda.identity.settings import LOCAL_ISSUER
from remuda.kernel.secrets import Secret

_DEFAULT = ComputeSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(Section):
    """Settings of compute."""

    look_again: Annotated[
        timedelta,
        About("Shortest time between the two reads that confirm the absence of a server.", is_some),
    ] = _DEFAULT.look_again
    check_every: Annotated[
        timedelta,
        About("Interval at which the monitor compares instances, servers and quota.", is_some),
    ] = _DEFAULT.check_every
    stuck_after: Annotated[
        timedelta, About("Time without progress after which the monitor reports an instance.", is_some)
    ] = _DEFAULT.stuck_after


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpu:
    """GPUs of a class of nodes."""

    vendor: Annotated[str, About("The vendor: NVIDIA or AMD.", is_gpu_vendor)]
    model: Annotated[str, About("The model.")]
    memory_gib: Annotated[int, About("Memory of each logical GPU.", is_positive)]
    physical_count: Annotated[int, About("Number of physical GPUs.", is_positive)] = 1
    logical_count: Annotated[int, About("Number of logical GPUs.", is_positive)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A class of nodes, which is a flavor while the cluster has such a node."""

    id: Annotated[str, About("A UUID of your choice: nodes have it in their label for the node class.", is_uuid)]
    name: Annotated[str, About("Name of the flavor.")]
    memory_gib: Annotated[int, About("Memory of a node.", is_positive)]
    disk_gib: Annotated[int, About("Size of its disk.", is_positive)]
    cpus: Annotated[int | None, About("Number of processors; by default the cluster's value.", is_positive)] = None
    cpu_family: Annotated[str, About("Name of its processors.")] = ""
    gpu: Annotated[NodeGpu | None, About("Its GPUs.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Kubernetes cluster that is a region."""

    kube_config_file: Annotated[Path, About("The file with its kubeconfig, with inline credentials.")]
    domain_name: Annotated[str, About("The domain of its services.")] = ""
    nodes: Annotated[tuple[ClusterNode, ...], About("Its classes of nodes.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VlanRange:
    """Consecutive VLANs, both ends included."""

    first: Annotated[int, About("The lowest of them.", is_vlan)]
    last: Annotated[int, About("The highest of them.", is_vlan)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNetwork:
    """A physical network, of which each network of a region is a VLAN."""

    name: Annotated[str, About("Its name in the cloud.", is_name)]
    vlans: Annotated[tuple[VlanRange, ...], About("VLANs that may be assigned; all, if none is named.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Region(Section):
    """Settings of region: the regions, and how their resources are managed."""

    simulated: Annotated[bool, About("Whether each simulated cloud of the catalogue is a region.")] = True
    catalogue: Annotated[
        Path | None, About("The TOML file that describes the simulated clouds.", shown="the built-in one")
    ] = None
    instant: Annotated[bool, About("Whether simulated clouds work without delays.")] = False
    kubernetes: Annotated[Mapping[str, Cluster], About("Kubernetes clusters, each of which is a region, by name.")] = (
        field(default_factory=dict)
    )
    private: Annotated[
        Mapping[str, tuple[str, ...]],
        About(
            "Regions by name that only some organizations see, with the ids of these organizations.",
            is_organization,
            needs_one=True,
        ),
    ] = field(default_factory=dict)
    physical_networks: Annotated[
        Mapping[str, PhysicalNetwork],
        About("Physical networks by the name of the region whose networks are VLANs of it."),
    ] = field(default_factory=dict)
    create_attempts: Annotated[
        int, About("Number of attempts to create a server that its cloud fails to start.", is_positive)
    ] = 3
    poll_idle: Annotated[timedelta, About("Poll interval of a cloud in which nothing is in progress.", is_some)] = (
        timedelta(minutes=5)
    )
    poll_busy: Annotated[
        timedelta,
        About("Poll interval of resources in progress, in a cloud that sends no events.", is_some),
    ] = timedelta(seconds=2)
    first_looks_per_s: Annotated[
        int, About("Number of servers per second that are polled for the first time.", is_positive)
    ] = 3
    judged_per_s: Annotated[
        int, About("Number of resources at a cloud per second that are checked for orphans.", is_positive)
    ] = 10
    addresses_low_percent: Annotated[
        int, About("Share of free addresses below which a network is reported as nearly full.", is_percentage)
    ] = 10
    look_again: Annotated[
        timedelta,
        About("Shortest time between the two reads that confirm the absence of a resource at a cloud.", is_some),
    ] = timedelta(seconds=1)
    image_size_gib: Annotated[int, About("Largest size of an imported image.", is_positive)] = 30
    image_targets: Annotated[
        tuple[str, ...], About("Private networks from which images may be imported.", is_network)
    ] = ()


_NOT_GIVEN = Path()
_HERE = Address("127.0.0.1", 8080)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(Section):
    """Settings of the process: its address, its data and the limits of its clients."""

    listen: Annotated[Address, About("HOST:PORT to listen on. Port 0 chooses a free port.")] = _HERE
    data: Annotated[
        Path,
        About(
            "The directory for all data: the store, its keys and credentials.json. It is created if it does not exist.",
            shown="$XDG_DATA_HOME/remuda, which is ~/.local/share/remuda unless set otherwise",
        ),
    ] = _NOT_GIVEN
    public_url: Annotated[
        str,
        About(
            "The URL at which clients reach the process, if there is a proxy in front.", is_url, "http:// and `listen`"
        ),
    ] = ""
    cors_origins: Annotated[
        tuple[str, ...], About("The origins whose web pages may use the APIs; `*` is any.", is_origin, needs_one=True)
    ] = ("*",)
    trusted_proxies: Annotated[
        tuple[str, ...], About("Networks of proxies whose headers about client certificates are trusted.", is_network)
    ] = ()
    rate_limit: Annotated[int, About("Requests per minute for each caller.", is_positive)] = 6_000
    connections: Annotated[int, About("Largest number of open connections.", is_positive)] = 10_000
    body_limit: Annotated[int, About("Largest size of a request body in bytes.", is_positive)] = 262_144
    head_timeout: Annotated[timedelta, About("Timeout for the head of a request.", is_some)] = timedelta(seconds=10)
    body_timeout: Annotated[timedelta, About("Timeout for the body of a request.", is_some)] = timedelta(seconds=10)
    request_timeout: Annotated[
        timedelta, About("Timeout for the processing of a request; streams are exempt.", is_some)
    ] = timedelta(seconds=30)
    idle_timeout: Annotated[timedelta, About("Timeout of an idle connection.", is_some)] = timedelta(seconds=75)
    read_timeout: Annotated[timedelta, About("Timeout for a client that does not read its response.", is_some)] = (
        timedelta(seconds=20)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRoles:
    """Roles that a user has everywhere."""

    subject: Annotated[
        str, About("An e-mail address in lower case; `*` is every user of an external issuer, with read access.")
    ]
    roles: Annotated[tuple[str, ...], About("Names of roles.")]
    issuer: Annotated[str, About("The issuer of the user; `uni` is this system.")] = LOCAL_ISSUER


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRoles:
    """Roles that the members of an external issuer's group have everywhere."""

    issuer: Annotated[str, About("The URL of the issuer.")]
    group: Annotated[str, About("The issuer's name of the group.")]
    roles: Annotated[tuple[str, ...], About("Names of roles.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A service account of the system."""

    role: Annotated[str, About("The role that it has everywhere.")]
    public_key: Annotated[str, About("The public key, as PEM, that verifies its signatures.")] = ""
    public_key_file: Annotated[Path | None, About("The file with that public key.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Trust in the tokens of an identity provider."""

    audience: Annotated[str, About("The audience that its tokens must have in `aud`.")]
    allow_external_identity: Annotated[
        bool, About("Accept users that are unknown here, with the roles that are bound to them, if any.")
    ] = False
    skip_email_verification: Annotated[
        bool, About("Accept e-mail addresses that the provider does not mark as verified.")
    ] = False
    require_authz_claim: Annotated[bool, About("Accept only users whom the provider assigns to an organization.")] = (
        False
    )
    signing_algorithms: Annotated[tuple[str, ...], About("Allowed signature algorithms; empty means RS256.")] = ()
    groups_claim: Annotated[str, About("The claim with the user's groups, for `group_bindings`: a URL.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An external identity provider."""

    issuer: Annotated[str, About("Its URL, exactly as in its tokens.")]
    type: Annotated[str, About("The type of the provider.", is_provider_type)] = "custom"
    client_id: Annotated[str, About("Our client id there, if users log in there.")] = ""
    client_secret: Annotated[Secret | None, About("The client secret.")] = None
    client_secret_file: Annotated[Path | None, About("The file with that secret.")] = None
    bearer_trust: Annotated[Trust | None, About("Trust in its own tokens; without it they are not accepted.")] = None


def _services() -> dict[str, Account]:
    return {
        "unikorn-region": Account(role="region-service"),
        "unikorn-kubernetes": Account(role="kubernetes-service"),
        "unikorn-compute": Account(role="compute-service"),
        "uni-storage": Account(role="storage-service"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap(Section):
    """Objects that the first start creates.

    Later changes have no effect, except that the administrator stays one while named.
    """

    administrator: Annotated[
        str, About("The e-mail address of the first user, who is a platform administrator.", is_email)
    ] = "admin@remuda.local"
    password: Annotated[
        Secret | None, About("The first user's password.", shown="a random one, printed at the first start")
    ] = None
    organization: Annotated[str, About("Name of the first organization.", is_name)] = "default"
    project: Annotated[str, About("Name of the first project.", is_name)] = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity(Section):
    """Settings of identity: roles, login, tokens and quotas."""

    issuer: Annotated[
        str,
        About(
            "Identity's own URL as clients reach it; it is the issuer of its tokens.",
            is_url,
            "`server.public_url` with /identity",
        ),
    ] = ""
    access_token_life: Annotated[timedelta, About("Lifetime of an access token.", is_some)] = timedelta(hours=1)
    refresh_token_life: Annotated[
        timedelta, About("Time after the login in which a session can be refreshed.", is_some)
    ] = timedelta(days=90)
    service_account_token_life: Annotated[timedelta, About("Lifetime of a service account's token.", is_some)] = (
        timedelta(days=90)
    )
    code_life: Annotated[timedelta, About("Lifetime of an authorization code.", is_some)] = timedelta(minutes=1)
    device_code_life: Annotated[timedelta, About("Lifetime of a device code.", is_some)] = timedelta(minutes=10)
    passport_life: Annotated[timedelta, About("Lifetime of an exchanged token.", is_some)] = timedelta(minutes=1)
    signing_key_life: Annotated[timedelta, About("Time after which the signing key is replaced.", is_some)] = timedelta(
        days=90
    )
    platform_administrators: Annotated[
        tuple[str, ...], About("Users, by e-mail address, with all permissions everywhere.", is_email)
    ] = ()
    role_bindings: Annotated[
        tuple[SubjectRoles, ...], About("Users with roles everywhere; they have no other roles.")
    ] = ()
    group_bindings: Annotated[
        tuple[GroupRoles, ...], About("Groups of external issuers whose members have roles everywhere.")
    ] = ()
    system_accounts: Annotated[
        Mapping[str, Account],
        About(
            "Services by name, which authenticate with a client certificate or a signed token. Yours are added.",
            shown="`unikorn-region`, `unikorn-kubernetes`, `unikorn-compute`, `uni-storage`, each with its own role",
        ),
    ] = field(default_factory=_services)
    providers: Annotated[
        Mapping[str, Provider],
        About("External OpenID providers by name, where users can log in, or whose tokens are trusted."),
    ] = field(default_factory=dict)
    intent_life: Annotated[
        timedelta, About("Time after which a quota reservation that was not confirmed expires.", is_some)
    ] = timedelta(minutes=10)
    usage_kept: Annotated[timedelta, About("Retention of the usage history.", is_some)] = timedelta(days=400)
    logins_per_minute: Annotated[
        int, About("Login attempts per minute for each address; ten times as many for each account.", is_positive)
    ] = 10
    bootstrap: Bootstrap = field(default_factory=Bootstrap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration(Section):
    """The whole configuration."""

    server: Server = field(default_factory=Server)
    identity: Identity = field(default_factory=Identity)
    region: Region = field(default_factory=Region)
    compute: Compute = field(default_factory=Compute)


SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in settings_of(Configuration)}
"""Every setting, by name."""
