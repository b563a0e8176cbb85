"""What the OpenAPI documents of the program tell a client: names, texts, formats and examples."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest

from remuda.app import tables
from remuda.http.merged_document import merged_document

Document = Mapping[str, Any]

API: Document = merged_document(tables().values(), version="1")
SCHEMAS: Document = API["components"]["schemas"]
WRITES = {"post", "put", "patch", "delete"}
IDS = re.compile(r"(^id|Id|ID)$")
OTHER_IDS = {
    "AuditTarget.id": "names whatever a path names, such as a client or a token",
    "RevocationRead.id": "a session is no object",
    "Subject.id": "the name of a user at an issuer",
    "ClientMetadataRead.id": "a built-in client has a word as its id",
    "ExternalNetworkRead.id": "a provider chooses it",
    "StaticMetadataRead.id": "flavors of a Kubernetes cluster have the ids that its operator chose",
    "ProviderMetadataRead.organizationId": "empty means none",
    "ProviderSpec.clientID": "the provider chooses it",
    "OrganizationSpec.providerID": "empty means none",
    "OrganizationSpec.googleCustomerID": "Google chooses it",
    "AllocationSpec.id": "a label: the services that use quota choose it",
    "OperationRead.id": "operations are named by the caller's key or at random",
    "CauseRead.operationID": "operations are named by the caller's key or at random",
    "CauseRead.reconcileID": "of logs",
    "CauseRead.traceID": "of traces, in hexadecimal",
    "OperationRead.traceID": "of traces, in hexadecimal",
    "EntryRead.traceID": "of traces, in hexadecimal",
    "Openstack.domainID": "the cloud chooses it",
    "Openstack.userID": "the cloud chooses it",
    "OrphanRead.objectId": "empty means none",
    "StorageCreateSpec.storageClassId": "has always been any text; an unknown one is rejected",
    "ServerStatusRead.sshCertificateAuthorityId": "empty means none",
}
"""Ids of which it is not certain that they are UUIDs, and why."""


def operations() -> Iterator[tuple[str, Document]]:
    for item in API["paths"].values():
        yield from item.items()


def fields() -> Iterator[tuple[str, Document]]:
    """Yield every field of every schema, and those of forms."""
    for name, schema in SCHEMAS.items():
        yield from ((f"{name}.{field}", found) for field, found in schema.get("properties", {}).items())
    for _, operation in operations():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            for field, found in content["schema"].get("properties", {}).items():
                yield f"{operation['operationId']}.{field}", found


def bodies() -> Iterator[tuple[str, Document]]:
    for _, operation in operations():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            yield operation["operationId"], content


def test_every_schema_has_a_name_that_is_no_path_of_a_module() -> None:
    assert [name for name in SCHEMAS if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name)] == []
    assert [name for name in SCHEMAS if name.endswith("Wire")] == []
    assert {"PlanStepRead", "InstanceRead", "ServerRead"} <= SCHEMAS.keys()


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [operation["operationId"] for _, operation in operations()]
    assert len(set(names)) == len(names) > 150
    assert {"compute_list_regions", "region_list_regions", "process_get_health"} <= set(names)


def test_every_field_is_described() -> None:
    assert sorted(name for name, field in fields() if not field.get("description")) == []


def test_every_schema_is_described() -> None:
    assert sorted(name for name, schema in SCHEMAS.items() if not schema.get("description")) == []


def test_every_parameter_is_described() -> None:
    assert [
        f"{operation['operationId']}.{parameter['name']}"
        for _, operation in operations()
        for parameter in operation.get("parameters", ())
        if not parameter.get("description")
    ] == []


def test_every_write_has_an_example_that_fits_its_schema() -> None:
    found = dict(bodies())
    assert len(found) > 60
    assert [name for name, content in found.items() if "example" not in content] == []
    for name, content in found.items():
        schema = {**content["schema"], "components": API["components"]}
        validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        assert [f"{name}: {fault}" for fault in validator.iter_errors(content["example"])] == []


def test_every_example_of_a_field_fits_the_field() -> None:
    for name, field in fields():
        validator = jsonschema_rs.Draft202012Validator({**field, "components": API["components"]})
        assert [f"{name}: {example}" for example in field.get("examples", ()) if not validator.is_valid(example)] == []


def formats(field: Document) -> set[str]:
    options = [field, *field.get("anyOf", ())]
    return {option["format"] for option in options if "format" in option}


def test_every_id_is_a_uuid_unless_it_need_not_be_one() -> None:
    named = ((name.partition("."), field) for name, field in fields())
    ids = {"".join(name): field for name, field in named if name[0] in SCHEMAS and IDS.search(name[2])}
    assert len(ids) > 50
    other = {name for name, field in ids.items() if "uuid" not in formats(field)}
    assert other == OTHER_IDS.keys()
    for parameter in (each for _, operation in operations() for each in operation.get("parameters", ())):
        if parameter["in"] == "path" and IDS.search(parameter["name"]) and parameter["name"] != "clientID":
            assert formats(parameter["schema"]) == {"uuid"}, parameter["name"]


TIMES = re.compile(r"(Time|[eE]xpiry|expires|[sS]ince|started|ended|closed|provenTime|At|firstSeen|lastActive)$")


def test_every_time_is_a_date_with_a_time_and_a_zone() -> None:
    times = {name: field for name, field in fields() if TIMES.search(name.partition(".")[2])}
    assert len(times) > 15
    assert {name for name, field in times.items() if "date-time" not in formats(field)} == set()


def test_the_document_says_how_to_authenticate() -> None:
    about = API["info"]["description"]
    for word in ("## Authentication", "Authorization: Bearer", "serviceaccounts", "openid-configuration", "401"):
        assert word in about
    schemes = API["components"]["securitySchemes"]
    assert {name: scheme["type"] for name, scheme in schemes.items()} == {"bearer": "http", "service": "mutualTLS"}
    assert all(scheme["description"] for scheme in schemes.values())
    named = {name for _, operation in operations() for each in operation["security"] for name in each}
    assert named == schemes.keys()


@pytest.mark.parametrize("service", sorted(set(tables()) - {"process"}))
def test_the_merged_document_has_every_path_below_its_prefix(service: str) -> None:
    published = tables()[service]
    assert {f"{published.prefix}{route.path}" for route in published.table.routes} <= API["paths"].keys()
