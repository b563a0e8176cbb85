"""Every kind of caller, with the permissions that hold in the end, written by hand."""

from tests.kit.proofs.authorization.matrix import ABROAD, HOME, NEXT_DOOR, Caller, PermissionSet


def callers(tenant: PermissionSet, operator: PermissionSet) -> tuple[Caller, ...]:
    """Return everybody, where `tenant` is all that can be done in a project and `operator` what only operators do."""
    reading = frozenset(right for right in tenant if right[1] == "read")
    service = Caller(name="the service", everywhere=tenant)
    reading_service = Caller(name="a service that reads", everywhere=reading)
    foreign_service = Caller(name="a foreign service", organizations={ABROAD.organization: tenant})
    return (
        Caller(name="anonymous", is_known=False),
        Caller(name="forged", is_known=False),
        Caller(name="expired", is_known=False),
        Caller(name="revoked", is_known=False),
        Caller(name="nobody"),
        Caller(name="foreigner", organizations={ABROAD.organization: tenant}),
        Caller(name="member", organizations={HOME.organization: frozenset()}),
        Caller(name="reader", projects={HOME: reading}),
        Caller(name="user", projects={HOME: tenant}),
        Caller(name="neighbour", projects={NEXT_DOOR: tenant}),
        Caller(name="organization-admin", organizations={HOME.organization: tenant}),
        Caller(name="auditor", everywhere=reading),
        Caller(name="admin", everywhere=tenant | operator),
        Caller(name="service for a user", everywhere=tenant, acts_for="user", own=service),
        Caller(name="service for a foreigner", everywhere=tenant, acts_for="foreigner", own=service),
        Caller(name="service as a user", projects={HOME: tenant}, acts_for="user", impersonates=True, own=service),
        Caller(
            name="service as a foreigner",
            organizations={ABROAD.organization: tenant},
            acts_for="foreigner",
            impersonates=True,
            own=service,
        ),
        Caller(name="service as nobody", acts_for="nobody", impersonates=True, own=service),
        Caller(name="service as an admin", everywhere=tenant, acts_for="admin", impersonates=True, own=service),
        Caller(
            name="reading service as a user",
            projects={HOME: reading},
            acts_for="user",
            impersonates=True,
            own=reading_service,
        ),
        Caller(name="foreign service as a user", acts_for="user", impersonates=True, own=foreign_service),
    )
