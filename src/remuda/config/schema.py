"""Schema of the configuration: every setting with its type, default and description."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from remuda.compute.settings import ComputeSettings
from remuda.config.fields import (
    Description,
    Section,
    Setting,
    check_email,
    check_listen_address,
    check_name,
    check_name_server,
    check_network,
    check_not_zero,
    check_origin,
    check_positive,
    check_provider_type,
    check_second_factor,
    check_tls,
    check_url,
    settings_of,
)
from remuda.config.log import LogConfig
from remuda.config.region_schema import RegionConfig
from remuda.http.server.exposition import DEFAULT_ADDRESS
from remuda.http.server.server import ListenAddress
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.kernel.secrets import Secret

_DEFAULT = ComputeSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeConfig(Section):
    """Settings of compute."""

    absence_delay: Annotated[
        timedelta,
        Description("Shortest time between the two reads that confirm the absence of a server.", check_not_zero),
    ] = _DEFAULT.absence_delay
    monitor_interval: Annotated[
        timedelta, Description("Interval at which the monitor compares instances, servers and quota.", check_not_zero)
    ] = _DEFAULT.monitor_interval
    stalled_after: Annotated[
        timedelta, Description("Time without progress after which the monitor reports an instance.", check_not_zero)
    ] = _DEFAULT.stalled_after


_NOT_GIVEN = Path()
_HERE = ListenAddress("127.0.0.1", 8080)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig(Section):
    """Settings of the process: its address, its data and the limits of its clients."""

    listen: Annotated[ListenAddress, Description("HOST:PORT to listen on. Port 0 chooses a free port.")] = _HERE
    data: Annotated[
        Path,
        Description(
            "The directory for all data: the store, its keys and credentials.json. It is created if it does not exist.",
            shown="$XDG_DATA_HOME/remuda, which is ~/.local/share/remuda unless set otherwise",
        ),
    ] = _NOT_GIVEN
    public_url: Annotated[
        str,
        Description(
            "The URL at which clients reach the process; needed with a proxy in front, or to listen on all addresses.",
            check_url,
            "http:// or https:// and `listen`",
        ),
    ] = ""
    cors_origins: Annotated[
        tuple[str, ...],
        Description("The origins whose web pages may use the APIs; `*` is any.", check_origin),
    ] = ()
    forwarding_proxies: Annotated[
        tuple[str, ...],
        Description("Networks of proxies whose X-Forwarded-For and X-Forwarded-Proto count.", check_network),
    ] = ()
    certificate_proxies: Annotated[
        tuple[str, ...],
        Description("Networks of proxies that may pass on client certificates; needs `client_ca_file`.", check_network),
    ] = ()
    tls_certificate_file: Annotated[
        Path | None,
        Description("PEM file of the server's certificate, with the intermediate ones after it.", shown="no TLS"),
    ] = None
    tls_key_file: Annotated[Path | None, Description("PEM file of that certificate's key.", shown="no TLS")] = None
    tls: Annotated[
        str, Description("`self-signed` makes a certificate in the data directory, for a first try.", check_tls)
    ] = ""
    insecure: Annotated[
        bool, Description("Whether clients may reach the server over the network without TLS, in clear text.")
    ] = False
    client_ca_file: Annotated[
        Path | None,
        Description("PEM file of the authorities that issue client certificates of services.", shown="no authority"),
    ] = None
    client_crl_file: Annotated[
        Path | None,
        Description(
            "PEM file of the revocation lists of these authorities; without a current list of its issuer, a client "
            "certificate is rejected.",
            shown="no certificate is revoked",
        ),
    ] = None
    object_limit: Annotated[
        int,
        Description(
            "Largest number of objects of one kind in a project or, for kinds without a project, in an organization.",
            check_positive,
        ),
    ] = 1_000
    object_limits: Annotated[
        Mapping[str, int],
        Description("Such limits of single kinds, by plural, such as `securitygroups`.", check_positive),
    ] = field(default_factory=dict)
    rate_limit: Annotated[int, Description("Requests per minute for each caller.", check_positive)] = 6_000
    failure_limit: Annotated[
        int,
        Description(
            "Failed authentications per minute of each address; beyond it they get 429, and valid credentials that "
            "are not known yet are verified more slowly.",
            check_positive,
        ),
    ] = 600
    connections: Annotated[
        int,
        Description(
            "Largest number of open connections; an address has at most half of them, and a caller half as many "
            "requests in progress.",
            check_positive,
        ),
    ] = 10_000
    watches: Annotated[
        int,
        Description("Largest number of open watches; organizations, sites and callers have shares.", check_positive),
    ] = 5_000
    history_limit: Annotated[
        int,
        Description("Largest size in bytes of the changes that the store keeps for watches to resume.", check_positive),
    ] = 268_435_456
    record_limit: Annotated[
        int,
        Description(
            "Largest size in bytes of the timeline, audit and operation records that the requests of one organization "
            "add in a day.",
            check_positive,
        ),
    ] = 4_294_967_296
    body_limit: Annotated[
        int,
        Description(
            "Largest size of a request body in bytes; at most 64 KiB on routes that require no credentials.",
            check_positive,
        ),
    ] = 262_144
    head_timeout: Annotated[timedelta, Description("Timeout for the head of a request.", check_not_zero)] = timedelta(
        seconds=10
    )
    body_timeout: Annotated[timedelta, Description("Timeout for the body of a request.", check_not_zero)] = timedelta(
        seconds=10
    )
    request_timeout: Annotated[
        timedelta, Description("Timeout for the processing of a request; streams are exempt.", check_not_zero)
    ] = timedelta(seconds=30)
    idle_timeout: Annotated[timedelta, Description("Timeout of an idle connection.", check_not_zero)] = timedelta(
        seconds=75
    )
    read_timeout: Annotated[
        timedelta, Description("Timeout for a client that does not read its response.", check_not_zero)
    ] = timedelta(seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig(Section):
    """Settings of the metrics of the process."""

    listen: Annotated[
        str | None,
        Description(
            "HOST:PORT at which the metrics are served; empty for none. Port 0 chooses a free port.",
            check_listen_address,
            f"{DEFAULT_ADDRESS}, or a free port of that host while another process has this one",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        Description("The file with the bearer token that readers of the metrics need.", shown="no token is needed"),
    ] = None
    tls_certificate_file: Annotated[
        Path | None,
        Description(
            "PEM file of the certificate of the metrics, with the intermediate ones after it.",
            shown="that of the server; without TLS if only this machine reaches the metrics",
        ),
    ] = None
    tls_key_file: Annotated[
        Path | None, Description("PEM file of that certificate's key.", shown="that of the server")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRolesConfig:
    """Roles that a user has everywhere."""

    subject: Annotated[
        str, Description("An e-mail address in lower case; `*` is every user of an external issuer, with read access.")
    ]
    roles: Annotated[tuple[str, ...], Description("Names of roles.")]
    issuer: Annotated[str, Description("The issuer of the user; `uni` is this system.")] = LOCAL_ISSUER


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRolesConfig:
    """Roles that the members of an external issuer's group have everywhere."""

    issuer: Annotated[str, Description("The URL of the issuer.")]
    group: Annotated[str, Description("The issuer's name of the group.")]
    roles: Annotated[tuple[str, ...], Description("Names of roles.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAccountConfig:
    """A service account of the system."""

    role: Annotated[str, Description("The role that it has everywhere.")]
    public_key: Annotated[str, Description("The public key, as PEM, that verifies its signatures.")] = ""
    public_key_file: Annotated[Path | None, Description("The file with that public key.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerTrustConfig:
    """Trust in the tokens of an identity provider."""

    audience: Annotated[str, Description("The audience that its tokens must have in `aud`.")]
    allow_external_identity: Annotated[
        bool, Description("Accept users that are unknown here, with the roles that are bound to them, if any.")
    ] = False
    skip_email_verification: Annotated[
        bool, Description("Accept e-mail addresses that the provider does not mark as verified.")
    ] = False
    require_authz_claim: Annotated[
        bool, Description("Accept only users whom the provider assigns to an organization.")
    ] = False
    signing_algorithms: Annotated[tuple[str, ...], Description("Allowed signature algorithms; empty means RS256.")] = ()
    groups_claim: Annotated[str, Description("The claim with the user's groups, for `group_bindings`: a URL.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProviderConfig:
    """An external identity provider."""

    issuer: Annotated[str, Description("Its URL, exactly as in its tokens.")]
    type: Annotated[str, Description("The type of the provider.", check_provider_type)] = "custom"
    client_id: Annotated[str, Description("Our client id there, if users log in there.")] = ""
    client_secret: Annotated[Secret | None, Description("The client secret.")] = None
    client_secret_file: Annotated[Path | None, Description("The file with that secret.")] = None
    bearer_trust: Annotated[
        BearerTrustConfig | None, Description("Trust in its own tokens; without it they are not accepted.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapConfig(Section):
    """Objects that the first start creates. Later, only the administrator matters: it stays one while named."""

    administrator: Annotated[
        str, Description("The e-mail address of the first user, who is a platform administrator.", check_email)
    ] = "admin@remuda.local"
    password: Annotated[
        Secret | None,
        Description(
            "The first user's password, which the first login replaces.",
            shown="a random one, printed at the first start",
        ),
    ] = None
    organization: Annotated[str, Description("Name of the first organization.", check_name)] = "default"
    project: Annotated[str, Description("Name of the first project.", check_name)] = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityConfig(Section):
    """Settings of identity: roles, login, tokens and quotas."""

    issuer: Annotated[
        str,
        Description(
            "Identity's own URL as clients reach it; it is the issuer of its tokens.",
            check_url,
            "`server.public_url` with /identity",
        ),
    ] = ""
    access_token_lifetime: Annotated[timedelta, Description("Lifetime of an access token.", check_not_zero)] = (
        timedelta(hours=1)
    )
    refresh_token_lifetime: Annotated[
        timedelta, Description("Time after the login in which a session can be refreshed.", check_not_zero)
    ] = timedelta(days=90)
    session_idle_limit: Annotated[
        timedelta,
        Description(
            "Time after the last refresh in which a session can be refreshed; at least `access_token_lifetime`.",
            check_not_zero,
        ),
    ] = timedelta(days=30)
    browser_idle_limit: Annotated[
        timedelta, Description("Time after its last use in which a login in a browser is valid.", check_not_zero)
    ] = timedelta(hours=4)
    service_account_token_lifetime: Annotated[
        timedelta, Description("Lifetime of a service account's token.", check_not_zero)
    ] = timedelta(days=90)
    code_lifetime: Annotated[timedelta, Description("Lifetime of an authorization code.", check_not_zero)] = timedelta(
        minutes=1
    )
    device_code_lifetime: Annotated[timedelta, Description("Lifetime of a device code.", check_not_zero)] = timedelta(
        minutes=10
    )
    passport_lifetime: Annotated[timedelta, Description("Lifetime of an exchanged token.", check_not_zero)] = timedelta(
        minutes=1
    )
    signing_key_lifetime: Annotated[
        timedelta, Description("Time after which the signing key is replaced.", check_not_zero)
    ] = timedelta(days=90)
    platform_administrators: Annotated[
        tuple[str, ...], Description("Users, by e-mail address, with all permissions everywhere.", check_email)
    ] = ()
    platform_second_factor: Annotated[
        str,
        Description(
            "Logins that need a second factor for roles of this configuration: `optional` is none, `password` those "
            "with a password, `always` also those at a provider.",
            check_second_factor,
        ),
    ] = "optional"
    role_bindings: Annotated[
        tuple[SubjectRolesConfig, ...], Description("Users with roles everywhere; they have no other roles.")
    ] = ()
    group_bindings: Annotated[
        tuple[GroupRolesConfig, ...], Description("Groups of external issuers whose members have roles everywhere.")
    ] = ()
    system_accounts: Annotated[
        Mapping[str, SystemAccountConfig],
        Description(
            "Services of other processes by name, which authenticate with a signed assertion or a client certificate."
        ),
    ] = field(default_factory=dict)
    providers: Annotated[
        Mapping[str, IdentityProviderConfig],
        Description("External OpenID providers by name, where users can log in, or whose tokens are trusted."),
    ] = field(default_factory=dict)
    intent_lifetime: Annotated[
        timedelta,
        Description(
            "Time after which an unconfirmed reservation expires, and an unfinished change ends.", check_not_zero
        ),
    ] = timedelta(minutes=10)
    provider_targets: Annotated[
        tuple[str, ...], Description("Private networks in which external providers may be.", check_network)
    ] = ()
    dns_servers: Annotated[
        tuple[str, ...],
        Description(
            "Name servers for the records that prove domains, such as 9.9.9.9 or [::1]:5353.",
            check_name_server,
            shown="those of the machine",
        ),
    ] = ()
    usage_retention: Annotated[timedelta, Description("Retention of the usage history.", check_not_zero)] = timedelta(
        days=400
    )
    logins_per_minute: Annotated[
        int,
        Description(
            "Failed logins per minute of each address, beyond which it is slowed down; attempts per minute of each "
            "browser known to an account.",
            check_positive,
        ),
    ] = 10
    login_failures_before_delay: Annotated[
        int,
        Description(
            "Failed logins to an account after which every further one delays the next, by twice as long each time.",
            check_positive,
        ),
    ] = 5
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig(Section):
    """Settings of the audit."""

    file: Annotated[
        Path | None,
        Description("The file to which audit records are appended, in an existing directory.", shown="no file"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration(Section):
    """The whole configuration."""

    server: ServerConfig = field(default_factory=ServerConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    identity: IdentityConfig = field(default_factory=IdentityConfig)
    region: RegionConfig = field(default_factory=RegionConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    log: LogConfig = field(default_factory=LogConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)


SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in settings_of(Configuration)}
