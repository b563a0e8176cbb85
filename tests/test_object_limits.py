"""Limits of the numbers of objects: every stored kind has one, has a quota, or says why it needs neither."""

from typing import Any

import pytest

from remuda.app import registry
from remuda.config.loader import Misconfigured
from remuda.config.object_limits import check_object_limits, object_limits
from remuda.config.schema import ServerConfig
from remuda.identity.quotas.ledger import BUILT_IN
from remuda.resources.conventions import ORGANIZATION, PAYING_ORGANIZATION, PROJECT
from remuda.store.kinds import Kind

_SCOPES = {ORGANIZATION, PROJECT, PAYING_ORGANIZATION}
_KINDS = registry().kinds


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.plural)
def test_m27_every_kind_is_counted_or_has_a_quota_or_says_why_not(kind: Kind[Any]) -> None:
    assert (kind.counted_in in _SCOPES) != bool(kind.uncounted), "declare `counted_in` or `uncounted`"
    reason, _, quota = kind.uncounted.partition(" ")
    assert reason != "quota" or quota in BUILT_IN


def test_kinds_that_tenants_create_without_a_quota_are_counted() -> None:
    counted = {kind.plural: kind.counted_in for kind in _KINDS if kind.counted_in}
    assert counted == {
        "projects": ORGANIZATION,
        "groups": ORGANIZATION,
        "organizationusers": ORGANIZATION,
        "users": PAYING_ORGANIZATION,
        "serviceaccounts": ORGANIZATION,
        "oauth2providers": ORGANIZATION,
        "imageimports": ORGANIZATION,
        "securitygroups": PROJECT,
        "sshcertificateauthorities": PROJECT,
        "filestorages": PROJECT,
    }


def test_the_limit_of_a_kind_is_that_of_its_setting_and_otherwise_the_default() -> None:
    limits = object_limits(ServerConfig(object_limit=7, object_limits={"groups": 9}))
    assert (limits.default, limits.of_kinds) == (7, {"groups": 9})


def test_m27_without_a_setting_every_kind_has_the_same_limit() -> None:
    limits = object_limits(ServerConfig())
    assert (limits.default, dict(limits.of_kinds)) == (1_000, {})


@pytest.mark.parametrize("plural", ["group", "computeinstances"])
def test_a_limit_of_a_kind_that_has_none_is_rejected(plural: str) -> None:
    with pytest.raises(Misconfigured, match=rf"server\.object_limits\.{plural} is not a kind with such a limit"):
        check_object_limits(ServerConfig(object_limits={plural: 9}))
