"""References in words that users understand."""

import pytest

from remuda.resources.crud import describe_references

REGION = "region.unikorn-cloud.org"


@pytest.mark.parametrize(
    ("references", "said"),
    [
        ([f"identities.{REGION}/f0"], "a network of region"),
        (
            [f"identities.{REGION}/f0", f"filestorages.{REGION}/f1", f"identities.{REGION}/f2"],
            "2 networks of region, file storage f1 of region",
        ),
        ([f"sshcertificateauthorities.{REGION}/f3"], "SSH certificate authority f3 of region"),
        (["computeinstances.compute.unikorn-cloud.org/i0"], "instance i0 of compute"),
        (["clusters.kubernetes.example.com/c0"], "clusters c0 of kubernetes"),
        (
            [f"servers.{REGION}/{number}" for number in range(6)],
            ", ".join(f"server {number} of region" for number in range(5)) + " and more",
        ),
    ],
)
def test_what_refers_to_something_is_told_by_sort_name_and_service(references: list[str], said: str) -> None:
    assert describe_references(references) == said
