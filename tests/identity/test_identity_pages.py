"""The pages about identity say what is so: their requests are sent as they stand, and their tables are the code's."""

import pkgutil
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

import remuda.identity
from remuda.http.routes import AnyRoute
from remuda.identity.app import TABLE
from remuda.identity.kinds import KINDS
from remuda.identity.quotas.ledger import BUILT_IN as QUOTAS
from remuda.identity.rbac.roles import BUILT_IN
from remuda.identity.tokens.jwt import Claims, IdClaims, PassportClaims
from remuda.identity.users.sagas import CREATE_ACCOUNT, CREATE_USER, UPDATE_ACCOUNT, UPDATE_USER
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.identity.environment import IdentityEnvironment
from tests.kit.identity.launch import run_identity
from tests.kit.identity.login import Browser
from tests.kit.identity.page_examples import Conversation, Direction
from tests.kit.identity.service_credentials import assertion, certified

DOCS = Path(__file__).parents[2] / "docs" / "reference"
JO, PASSWORD = "jo@example.com", "correct horse battery staple"

ORGANIZATION = "/api/v1/organizations/{organizationID}"
USUAL = {"GET": "R", "POST": "C", "PUT": "U", "PATCH": "U", "DELETE": "D"}
PLACES = {
    "public": "no credentials",
    "authenticated": "any credentials",
    "everywhere": "everywhere",
    "organization": "in the organization",
    "project": "in the project",
}

_METRIC = re.compile(r"`(remuda_[a-z_]+)`")
_BLOCK = re.compile(r"```http\n(.*?)```", re.DOTALL)


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()


def conversations(name: str) -> list[str]:
    return _BLOCK.findall(page(name))


class Cast:
    """Everybody whom the pages name."""

    def __init__(self, identity: IdentityEnvironment) -> None:
        self._identity = identity
        self._browser = Browser(Client(app=identity.asgi, peer=("192.0.2.1", 4711)))

    async def known(self) -> dict[str, str]:
        """Return what the pages take for granted."""
        identity = self._identity
        acme, other = await identity.organization("acme"), await identity.organization("other")
        group = await identity.group(acme, "user", name="users")
        project = await identity.project(acme, group, name="web")
        ann = await identity.member("ann@example.com", acme, "administrator")
        membership = await identity.user(JO, acme, group)
        await identity.local(JO, PASSWORD)
        claim = {"actor": JO, "type": "user", "organizationId": acme, "projectId": project}
        headers = certified("unikorn-compute", claim, now=identity.clock.now())
        return {
            "organization": acme,
            "other": other,
            "group": group,
            "other_group": await identity.group(other, "user"),
            "project": project,
            "membership": membership,
            "root": identity.root,
            "ann": ann,
            "jo": await identity.log_in(JO),
            "compute": await identity.service_token("unikorn-compute"),
            "region": await identity.service_token("unikorn-region"),
            "assertion": assertion(audience=identity.app.ports.settings.issuer, now=identity.clock.now()),
            "certificate": headers["ssl-client-cert"],
            "claim": headers["x-principal"],
        }

    async def logs_in(self, conversation: Conversation) -> Reply:
        """Open what the client asked for, and log in."""
        login = await self._get(conversation.target)
        return await self._browser.submit(login, form=0, email=JO, password=PASSWORD)

    async def says_yes(self, conversation: Conversation) -> None:
        """Open the link that a device shows, log in if need be, and let the device in."""
        page = await self._get(f"/oauth2/v2/device?user_code={conversation.known['user_code']}")
        assert "Allow this device?" in page.body.decode(), page.body.decode()
        await self._browser.submit(page, button=("decision", "approve"))

    async def waits(self, _: Conversation) -> None:
        """Let controllers do what they have to."""
        await self._identity.clock.sleep(1)

    async def _get(self, target: str) -> Reply:
        parts = urlsplit(target)
        return await self._browser.get(parts.path, parse_qsl(parts.query))


def in_conversation(name: str) -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        cast = Cast(identity)
        sagas: dict[str, Direction] = {
            "a moment passes": cast.waits,
            "Jo logs in": cast.logs_in,
            "Jo opens verification_uri_complete, logs in and says yes": cast.says_yes,
        }
        conversation = Conversation(client=identity.client(), known=await cast.known(), stage=sagas)
        for block in conversations(name):
            await conversation.hold(block)

    run_identity(scenario)


@pytest.mark.parametrize(
    "lie",
    [
        "404",
        '200\n{"organizations": []}',
        '200\n{"organizations": [{"id": "$organization"}]}',
        '200\n{"organizations": [{"id": "$organization", …}], "more": "…"}',
        '200\n{"organizations": [{"id": "$project", …}]}',
        '200\nX-Trace-Id: none\n{"organizations": [{"id": "$organization", …}]}',
        "200",
    ],
)
async def test_a_page_that_says_something_else_is_found_out(identity: IdentityEnvironment, lie: str) -> None:
    conversation = Conversation(client=identity.client(), known=await Cast(identity).known())
    asked = "GET /api/v1/acl\nAuthorization: Bearer $jo\n\n"
    await conversation.hold(f'{asked}200\n{{"organizations": [{{"id": "$organization", …}}]}}')
    with pytest.raises(AssertionError):
        await conversation.hold(f"{asked}{lie}")


@pytest.mark.parametrize("name", ["identity-api", "tokens", "quotas"])
def test_what_a_page_asks_is_answered_as_it_says(name: str) -> None:
    assert conversations(name)
    in_conversation(name)


def test_the_kinds_of_quota_are_those_of_the_code() -> None:
    told = re.findall(r"^\| `(\w+)` \| (\d+) \| (.+) \|$", page("quotas"), re.MULTILINE)
    assert told == [(kind, str(spec.default), spec.description) for kind, spec in QUOTAS.items()]


def test_the_routes_are_those_of_the_code() -> None:
    told = {
        (path.replace("…", ORGANIZATION), method.split()[0], letter(method), needs)
        for paths, methods, needs in re.findall(
            r"^\| (`[/…].*`) \| ([A-Z].*) \| (.+) \|$", page("identity-api"), re.MULTILINE
        )
        for path in re.findall(r"`(.+?)`", paths)
        for method in methods.split(", ")
    }
    assert told == {(route.path, route.method, verb_of(route), needs_of(route)) for route in TABLE.routes}


def letter(method: str) -> str:
    """Return the letter of the right that a method needs: `POST (U)` is U, and POST alone C."""
    name, _, told = method.partition(" ")
    return told.strip("()") or USUAL[name]


def verb_of(route: AnyRoute) -> str:
    return USUAL[route.method] if route.permission is None else route.permission.verb[0].upper()


def needs_of(route: AnyRoute) -> str:
    return PLACES[route.scope] if route.permission is None else f"`{route.permission.endpoint}`, {PLACES[route.scope]}"


def test_the_roles_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| ((?:every|in the ).+?) \| (.+) \|$", page("identity-api"), re.MULTILINE)
    told = {
        (role, place, f"identity:{endpoint}", letter)
        for role, place, cell in rows
        for group in cell.split(" · ")
        for endpoint in re.findall(r"`(.+?)`", group)
        for letter in group.split()[-1]
    }
    assert told == {
        (role, PLACES[scope], grant.name, verb[0].upper())
        for role, spec in BUILT_IN.items()
        for scope in ("everywhere", "organization", "project")
        for grant in getattr(spec.scopes, scope)
        for verb in grant.operations
        if grant.name.startswith("identity:")
    }


def test_the_claims_are_those_of_the_code() -> None:
    types = {"access": Claims, "ID": IdClaims, "passport": PassportClaims}
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| ((?:access|ID|passport).*?) \|", page("tokens"), re.MULTILINE)
    told = {
        (token, claim)
        for claims, tokens in rows
        for claim in re.findall(r"\w+", claims)
        for token in tokens.split(", ")
    }
    assert told == {(token, claim) for token, kind in types.items() for claim in kind.__struct_fields__}


def test_the_packages_are_those_of_the_code() -> None:
    (table,) = re.findall(r"\| Package \| Objects \| \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", page("identity-api"))
    told = re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE)
    packages = {each.name for each in pkgutil.iter_modules(remuda.identity.__path__) if each.ispkg}
    assert sorted(told) == sorted(packages - {"kinds"})


def test_every_object_has_its_package() -> None:
    rows = re.findall(r"^\| (?:`[a-z]+`|\(beside them\)) \| (`.+?`) \|", page("identity-api"), re.MULTILINE)
    told = [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(told) == sorted(kind.plural for kind in KINDS)


async def test_controllers_operations_and_metrics_are_those_of_the_code(identity: IdentityEnvironment) -> None:
    (table,) = re.findall(r"\| Controller \| \|\n\|---\|---\|\n((?:\|.*\n)+)", page("identity-api"))
    told = [name for row in table.splitlines() for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted(told) == sorted(identity.app.running_controllers)
    for saga in (CREATE_USER, UPDATE_USER, CREATE_ACCOUNT, UPDATE_ACCOUNT):
        assert f"`{saga.name}`" in page("identity-api")
    families = identity.app.ports.metrics.collect()
    real = {f"{each.name}_total" if each.type == "counter" else each.name for each in families}
    (table,) = re.findall(r"^## Identity\n(.+?)^## ", page("metrics"), re.MULTILINE | re.DOTALL)
    assert {*_METRIC.findall(table)} == {name for name in real if not name.startswith("remuda_operation")}
