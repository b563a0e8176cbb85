"""Everything that can be set, with its type, its default and what it means.

What can be set about compute, with its type, its default and what it means.

What can be set about region, with its type, its default and what it means.
"""

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
    """How closely instances are looked after."""

    look_again: Annotated[
        timedelta,
        About("How far two looks are apart, at least, that find a server gone which was there before.", is_some),
    ] = _DEFAULT.look_again
    check_every: Annotated[
        timedelta,
        About("How often the monitor looks whether instances, servers and what is held for them agree.", is_some),
    ] = _DEFAULT.check_every
    stuck_after: Annotated[
        timedelta, About("For how long an instance may not move before the monitor says so.", is_some)
    ] = _DEFAULT.stuck_after


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpu:
    """The GPUs of a sort of node."""

    vendor: Annotated[str, About("Who makes them: NVIDIA or AMD.", is_gpu_vendor)]
    model: Annotated[str, About("What they are called.")]
    memory_gib: Annotated[int, About("How much memory each logical one has.", is_positive)]
    physical_count: Annotated[int, About("How many there are.", is_positive)] = 1
    logical_count: Annotated[int, About("As how many they are shown.", is_positive)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A sort of node, which is a flavor while the cluster has such a node."""

    id: Annotated[str, About("A UUID of your own: nodes say it in their label for the node class.", is_uuid)]
    name: Annotated[str, About("What the flavor is called.")]
    memory_gib: Annotated[int, About("How much memory such a node has.", is_positive)]
    disk_gib: Annotated[int, About("How large its disk is.", is_positive)]
    cpus: Annotated[int | None, About("How many processors it has; left out, as the cluster says.", is_positive)] = None
    cpu_family: Annotated[str, About("What its processors are called.")] = ""
    gpu: Annotated[NodeGpu | None, About("Its GPUs.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Kubernetes cluster that is a region."""

    kube_config_file: Annotated[Path, About("The file with its kubeconfig, which has everything in it.")]
    domain_name: Annotated[str, About("Below which its services have their names.")] = ""
    nodes: Annotated[tuple[ClusterNode, ...], About("The sorts of nodes that it has.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VlanRange:
    """VLANs in a row, both ends included."""

    first: Annotated[int, About("The lowest of them.", is_vlan)]
    last: Annotated[int, About("The highest of them.", is_vlan)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNetwork:
    """A physical network, of which each network of a region is a VLAN."""

    name: Annotated[str, About("What the cloud calls it.", is_name)]
    vlans: Annotated[tuple[VlanRange, ...], About("Those that are ours to give; all there are, if none is named.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Region(Section):
    """Which regions there are, and how what is in them is looked after."""

    simulated: Annotated[bool, About("Each simulated cloud of the catalogue is a region.")] = True
    catalogue: Annotated[
        Path | None, About("The TOML file that describes the simulated clouds.", shown="the one that comes with Remuda")
    ] = None
    instant: Annotated[bool, About("In simulated clouds nothing takes any time.")] = False
    kubernetes: Annotated[Mapping[str, Cluster], About("Kubernetes clusters, each of which is a region, by name.")] = (
        field(default_factory=dict)
    )
    private: Annotated[
        Mapping[str, tuple[str, ...]],
        About(
            "Regions by name that only some organizations see, with the ids of these.", is_organization, needs_one=True
        ),
    ] = field(default_factory=dict)
    physical_networks: Annotated[
        Mapping[str, PhysicalNetwork],
        About("Regions by name whose networks are VLANs of a physical network, with that."),
    ] = field(default_factory=dict)
    create_attempts: Annotated[
        int, About("How often a server is made that its cloud could not bring up.", is_positive)
    ] = 3
    poll_idle: Annotated[timedelta, About("How often a cloud is looked at in which nothing is under way.", is_some)] = (
        timedelta(minutes=5)
    )
    poll_busy: Annotated[
        timedelta,
        About("How often a cloud that tells nothing by itself is asked about what is under way in it.", is_some),
    ] = timedelta(seconds=2)
    first_looks_per_s: Annotated[
        int, About("How many servers a second are looked at of which nobody knows how they were.", is_positive)
    ] = 3
    judged_per_s: Annotated[
        int, About("How many things at a cloud a second are held against what should be there.", is_positive)
    ] = 10
    addresses_low_percent: Annotated[
        int, About("A network of whose addresses a smaller share is free runs low.", is_percentage)
    ] = 10
    look_again: Annotated[
        timedelta,
        About("How far two looks are apart, at least, that find something gone at a cloud.", is_some),
    ] = timedelta(seconds=1)
    image_size_gib: Annotated[int, About("How large an image may be that is imported.", is_positive)] = 30
    image_targets: Annotated[
        tuple[str, ...], About("Networks of your own from which images may be imported all the same.", is_network)
    ] = ()


_NOT_GIVEN = Path()
_HERE = Address("127.0.0.1", 8080)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(Section):
    """The process: where it answers, where it keeps things, and how much it takes from clients."""

    listen: Annotated[Address, About("HOST:PORT to answer on. Port 0 takes one that is free.")] = _HERE
    data: Annotated[
        Path,
        About(
            "The directory that holds everything: the store, its keys and credentials.json. It is made if need be.",
            shown="$XDG_DATA_HOME/remuda, which is ~/.local/share/remuda unless set otherwise",
        ),
    ] = _NOT_GIVEN
    public_url: Annotated[
        str,
        About("The URL that clients reach the process by, where a proxy is in front.", is_url, "http:// and `listen`"),
    ] = ""
    cors_origins: Annotated[
        tuple[str, ...], About("The origins whose web pages may use the APIs; `*` is any.", is_origin, needs_one=True)
    ] = ("*",)
    trusted_proxies: Annotated[
        tuple[str, ...], About("Networks whose word about client certificates is believed.", is_network)
    ] = ()
    rate_limit: Annotated[int, About("How many requests a minute each caller has.", is_positive)] = 6_000
    connections: Annotated[int, About("How many connections may be open at once.", is_positive)] = 10_000
    body_limit: Annotated[int, About("How many bytes a request's body may have.", is_positive)] = 262_144
    head_timeout: Annotated[timedelta, About("How long a request's head may take to arrive.", is_some)] = timedelta(
        seconds=10
    )
    body_timeout: Annotated[timedelta, About("How long a request's body may take to arrive.", is_some)] = timedelta(
        seconds=10
    )
    request_timeout: Annotated[
        timedelta, About("How long a service may work on a request; streams are exempt.", is_some)
    ] = timedelta(seconds=30)
    idle_timeout: Annotated[timedelta, About("How long a connection may wait for its next request.", is_some)] = (
        timedelta(seconds=75)
    )
    read_timeout: Annotated[timedelta, About("How long a client may read nothing of its answer.", is_some)] = timedelta(
        seconds=20
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRoles:
    """Roles that one user has everywhere."""

    subject: Annotated[
        str, About("An e-mail address in lower case; `*` is everybody of an issuer that is not ours, who then reads.")
    ]
    roles: Annotated[tuple[str, ...], About("Names of roles.")]
    issuer: Annotated[str, About("Who vouches for the user; `uni` is this system.")] = LOCAL_ISSUER


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRoles:
    """Roles that everybody in a group of an external issuer has everywhere."""

    issuer: Annotated[str, About("The URL of the issuer.")]
    group: Annotated[str, About("What the issuer calls the group.")]
    roles: Annotated[tuple[str, ...], About("Names of roles.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A service."""

    role: Annotated[str, About("The name of the role that it has everywhere.")]
    public_key: Annotated[str, About("The PEM of the key that verifies what it signs.")] = ""
    public_key_file: Annotated[Path | None, About("The file with that PEM.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How far the tokens of a provider are believed."""

    audience: Annotated[str, About("What its tokens must name in `aud`, so that they are meant for us.")]
    allow_external_identity: Annotated[
        bool, About("Let in whom we do not know, with the roles that are bound to that one here, if any.")
    ] = False
    skip_email_verification: Annotated[
        bool, About("Believe e-mail addresses that the provider does not call verified.")
    ] = False
    require_authz_claim: Annotated[bool, About("Let in only users whom the provider puts into an organization.")] = (
        False
    )
    signing_algorithms: Annotated[tuple[str, ...], About("What it may sign with; nothing means RS256.")] = ()
    groups_claim: Annotated[str, About("The claim with the user's groups, for `group_bindings`: a URL.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Somebody else who knows people."""

    issuer: Annotated[str, About("Its URL, letter by letter as its tokens have it.")]
    type: Annotated[str, About("Whose way of doing things it follows.", is_provider_type)] = "custom"
    client_id: Annotated[str, About("What it knows us by, if people are to log in there.")] = ""
    client_secret: Annotated[Secret | None, About("The secret that goes with it.")] = None
    client_secret_file: Annotated[Path | None, About("The file with that secret.")] = None
    bearer_trust: Annotated[Trust | None, About("How far its own tokens are believed here, if at all.")] = None


def _services() -> dict[str, Account]:
    return {
        "unikorn-region": Account(role="region-service"),
        "unikorn-kubernetes": Account(role="kubernetes-service"),
        "unikorn-compute": Account(role="compute-service"),
        "uni-storage": Account(role="storage-service"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap(Section):
    """What the first start makes. Later it changes nothing, but the administrator stays one while it is named here."""

    administrator: Annotated[
        str, About("The e-mail address of the first user, who is a platform administrator.", is_email)
    ] = "admin@remuda.local"
    password: Annotated[
        Secret | None, About("The first user's password.", shown="a random one, printed at the first start")
    ] = None
    organization: Annotated[str, About("The name of the first organization.", is_name)] = "default"
    project: Annotated[str, About("The name of the first project.", is_name)] = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity(Section):
    """Who may do what, how they log in, and how long that holds."""

    issuer: Annotated[
        str,
        About(
            "Identity's own URL as clients reach it; its tokens say that they are from here.",
            is_url,
            "`server.public_url` with /identity",
        ),
    ] = ""
    access_token_life: Annotated[timedelta, About("How long an access token is good.", is_some)] = timedelta(hours=1)
    refresh_token_life: Annotated[timedelta, About("How long after the login a session can be refreshed.", is_some)] = (
        timedelta(days=90)
    )
    service_account_token_life: Annotated[timedelta, About("How long a service account's token is good.", is_some)] = (
        timedelta(days=90)
    )
    code_life: Annotated[timedelta, About("How long an authorization code can be exchanged.", is_some)] = timedelta(
        minutes=1
    )
    device_code_life: Annotated[timedelta, About("How long a device waits for its user.", is_some)] = timedelta(
        minutes=10
    )
    passport_life: Annotated[timedelta, About("How long an exchanged token is good.", is_some)] = timedelta(minutes=1)
    signing_key_life: Annotated[timedelta, About("After how long a new key signs.", is_some)] = timedelta(days=90)
    platform_administrators: Annotated[
        tuple[str, ...], About("Users, by e-mail address, who may do everything everywhere.", is_email)
    ] = ()
    role_bindings: Annotated[
        tuple[SubjectRoles, ...], About("Users with roles everywhere; these then have nothing besides.")
    ] = ()
    group_bindings: Annotated[
        tuple[GroupRoles, ...], About("Groups of external issuers whose members have roles everywhere.")
    ] = ()
    system_accounts: Annotated[
        Mapping[str, Account],
        About(
            "Services by name, who prove it by a client certificate or what their key signed. Yours are added.",
            shown="`unikorn-region`, `unikorn-kubernetes`, `unikorn-compute`, `uni-storage`, each with its own role",
        ),
    ] = field(default_factory=_services)
    providers: Annotated[
        Mapping[str, Provider],
        About("External OpenID providers by name, where everybody can log in, or whose tokens are believed."),
    ] = field(default_factory=dict)
    intent_life: Annotated[
        timedelta, About("After how long a quota allocation that nobody confirmed is taken back.", is_some)
    ] = timedelta(minutes=10)
    usage_kept: Annotated[timedelta, About("How long it can be read what was used when.", is_some)] = timedelta(
        days=400
    )
    logins_per_minute: Annotated[
        int, About("How often one address may try a password; one account, ten times as often.", is_positive)
    ] = 10
    bootstrap: Bootstrap = field(default_factory=Bootstrap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration(Section):
    """All of it."""

    server: Server = field(default_factory=Server)
    identity: Identity = field(default_factory=Identity)
    region: Region = field(default_factory=Region)
    compute: Compute = field(default_factory=Compute)


SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in settings_of(Configuration)}
"""Every setting, by its name."""
