"""What people want of an instance: the options of create, update and plan, and what the API is sent for them.

``remuda instance list`` and ``show``.

``remuda instance create`` and ``delete``.

A plan in plain words: what is done, what is lost, what survives, for how long it is down, and what it costs.

``remuda instance plan`` and ``update``: what a change would do, and the change.

No change is made whose plan was not shown. It is made under the plan's hash, so what is done is what was told; if the
instance has changed meanwhile, the plan that it is now is shown and asked about.
"""

import base64
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from remuda.cli.crud import agreed, delete_one, find, id_of, list_all, make_one, settled, show_found
from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.offers import offered, offers
from remuda.cli.options import ABOUT, AT_ONCE, About, Output, Waiting, Watch, Yes, bytes_of, checked_prefix
from remuda.cli.output import Format, dump, note, room, say
from remuda.cli.output import show as show_text
from remuda.cli.resources import FLAVOR, IMAGE, INSTANCE, NETWORK, SECURITY_GROUP, SSH_CA, Noun
from remuda.kernel.errors import PlanChanged, PlanRequired, RemudaError, Unusable


def list_(*, network: str | None = None, watch: Watch = False, output: Output = "table", where: Where = HERE) -> None:
    """List the instances of the project.

    Parameters
    ----------
    network
        Only those on this network, by name or id.

    """
    with where.open() as asked:
        more = {} if network is None else {"networkID": id_of(find(asked, NETWORK, network))}
        list_all(asked, INSTANCE, output, watch=watch, more=more)


def show(instance: str, /, *, output: Output = "table", where: Where = HERE) -> None:
    """Show an instance.

    Parameters
    ----------
    instance
        Its name or id.

    """
    with where.open() as asked:
        show_instance(asked, find(asked, INSTANCE, instance), output)


def show_instance(asked: Asked, instance: Any, output: Format) -> None:
    """Show an instance; for people, with the names of what it is made of."""
    region = instance["status"]["regionId"]
    names = _offered(asked, FLAVOR, region) | _offered(asked, IMAGE, region) if output == "table" else {}
    show_found(asked, INSTANCE, instance, output, names)


def _offered(asked: Asked, noun: Noun, region: str) -> dict[str, str]:
    try:
        return {id_of(each): each["metadata"]["name"] for each in offers(asked, noun, region)}
    except RemudaError:
        return {}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Extras:
    """What need not be said. None is as it is."""

    user_data: Annotated[
        Path | None, Parameter(help="A file with what cloud-init does when the instance first starts.")
    ] = None
    security_group: Annotated[
        tuple[str, ...] | None,
        Parameter(
            help="A security group of its network, by name or id; say it again for another one.",
            negative="--no-security-group",
        ),
    ] = None
    public_ip: Annotated[bool | None, Parameter(help="Whether it has a public address.")] = None
    source: Annotated[
        tuple[str, ...] | None,
        Parameter(help="An IPv4 prefix from which it may also send, such as a VPN's.", negative="--no-source"),
    ] = None
    ssh_ca: Annotated[
        str | None,
        Parameter(help="Who has a certificate of this SSH authority can log in; by name or id, or '' for none."),
    ] = None
    protect_deletion: Annotated[bool | None, Parameter(help="Whether it must not be deleted.")] = None
    protect_plan: Annotated[
        bool | None, Parameter(help="Whether a change that destroys something needs its plan's hash.")
    ] = None

    def __post_init__(self) -> None:
        """Refuse a prefix that is none before anything is done."""
        for each in self.source or ():
            checked_prefix("--source", each)

    def applied(self, asked: Asked, spec: dict[str, Any], network: str) -> dict[str, Any]:
        """Return what to ask for of an instance on a network that has been asked for so far."""
        spec = dict(spec)
        if self.user_data is not None:
            spec["userData"] = base64.b64encode(bytes_of(self.user_data, "--user-data")).decode()
        if self.ssh_ca is not None:
            spec.pop("sshCertificateAuthorityId", None)
        if self.ssh_ca:
            spec["sshCertificateAuthorityId"] = id_of(find(asked, SSH_CA, self.ssh_ca))
        if networking := {**(spec.get("networking") or {}), **self._networking(asked, network)}:
            spec["networking"] = networking
        if protection := {**(spec.get("protection") or {}), **self._protection()}:
            spec["protection"] = protection
        return spec

    def _networking(self, asked: Asked, network: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.security_group is not None:
            query = {"networkID": network}
            found["securityGroups"] = [id_of(find(asked, SECURITY_GROUP, each, query)) for each in self.security_group]
        if self.public_ip is not None:
            found["publicIP"] = self.public_ip
        if self.source is not None:
            found["allowedSourceAddresses"] = [*self.source]
        return found

    def _protection(self) -> dict[str, bool]:
        asked = {"deletion": self.protect_deletion, "plan": self.protect_plan}
        return {name: value for name, value in asked.items() if value is not None}


EXTRAS = Extras()
"""All is to stay as it is."""
Flavor = Annotated[str | None, Parameter(help="Another flavor, by name or id: it gets another server.")]
"""Another flavor."""
Image = Annotated[str | None, Parameter(help="Another image, by name or id: its server is rebuilt.")]
"""Another image."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What is to be different. None is as it is."""

    flavor: str | None
    image: str | None
    extras: Extras
    about: About

    def body(self, asked: Asked, instance: Any) -> dict[str, Any]:
        """Return what to ask for of an instance as it is."""
        spec, status = dict(instance["spec"]), instance["status"]
        if self.flavor is not None:
            spec["flavorId"] = offered(asked, FLAVOR, status["regionId"], self.flavor)
        if self.image is not None:
            spec["imageId"] = offered(asked, IMAGE, status["regionId"], self.image)
        spec = self.extras.applied(asked, spec, status["networkId"])
        return {"metadata": self.about.metadata(instance["metadata"]), "spec": spec}


def create(
    name: str,
    /,
    *,
    network: str,
    flavor: str,
    image: str,
    extras: Extras = EXTRAS,
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Make an instance.

    Parameters
    ----------
    name
        What to call it; no other on its network is called so.
    network
        The network it is on, by name or id; it also says in which region.
    flavor
        How large it is, by name or id; see remuda flavor list.
    image
        What it is made of, by name or id; see remuda image list.

    """
    with where.open() as asked:
        place = asked.needs_project()
        found = find(asked, NETWORK, network)
        region = found["status"]["regionId"]
        spec = {
            "organizationId": place.organization,
            "projectId": place.project,
            "networkId": id_of(found),
            "flavorId": offered(asked, FLAVOR, region, flavor),
            "imageId": offered(asked, IMAGE, region, image),
        }
        body = {"metadata": about.metadata({"name": name}), "spec": extras.applied(asked, spec, id_of(found))}
        show_instance(asked, make_one(asked, INSTANCE, body, waiting=waiting), output)


def delete(instance: str, /, *, yes: Yes = False, waiting: Waiting = AT_ONCE, where: Where = HERE) -> None:
    """Give up an instance, with its disk and its addresses.

    Parameters
    ----------
    instance
        Its name or id.

    """
    with where.open() as asked:
        delete_one(asked, INSTANCE, instance, yes=yes, waiting=waiting, lost=" with its disk and its addresses")


_NARROWEST = 40
_THINGS = {
    "id": "id",
    "name": "name",
    "privateIP": "private address",
    "macAddress": "MAC address",
    "publicIP": "public address",
    "rootDisk": "root disk",
    "sshHostKeys": "SSH host keys",
    "memory": "what runs on it",
}


def plan_text(plan: Mapping[str, Any], room: int | None = None) -> str:
    """Return a plan as text, in lines of at most so many letters if that is said."""
    if not plan["steps"]:
        return "Nothing would change.\n"
    parts = [*_parts(plan)]
    width = max(len(heading) for heading, _ in parts)
    shown = []
    for heading, lines in parts:
        wrapped = [piece for line in lines for piece in _wrapped(line, None if room is None else room - width - 2)]
        shown += [
            f"{first:<{width}}  {line}\n" for first, line in zip([heading, *[""] * len(wrapped)], wrapped, strict=False)
        ]
    return "".join(shown)


def _wrapped(line: str, room: int | None) -> list[str]:
    return [line] if room is None else textwrap.wrap(line, max(room, _NARROWEST))


def _parts(plan: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    yield "Plan", [plan["message"]]
    for step in plan["steps"]:
        yield step["kind"].capitalize(), [*(change["message"] for change in step["changes"]), step["message"]]
    yield "Lost", [each["message"] for each in plan["destroyed"]] or ["Nothing."]
    yield "Survives", [", ".join(_thing(each) for each in plan["preserved"]) or "Nothing."]
    yield "Downtime", [plan["downtime"]["message"]]
    yield "Quota", [_quota(plan["quota"])]
    if plan.get("blockers"):
        yield "Blocked", [each["message"] for each in plan["blockers"]]
    yield "Hash", [plan["hash"]]


def _thing(thing: Mapping[str, Any]) -> str:
    word = _THINGS.get(thing["attribute"], thing["attribute"])
    return f"{word} {thing['value']}" if thing.get("value") else word


def _quota(changes: Sequence[Mapping[str, Any]]) -> str:
    told = [
        f"{each['kind']} {each['before']} -> {each['after']} ({each['delta']:+})" for each in changes if each["delta"]
    ]
    if told:
        return ", ".join(told)
    costs = ", ".join(f"{each['kind']} {each['after']}" for each in changes if each["after"])
    return f"As before ({costs})." if costs else "It costs nothing."


_ATTEMPTS = 5


def plan(
    instance: str,
    /,
    *,
    flavor: Flavor = None,
    image: Image = None,
    extras: Extras = EXTRAS,
    about: About = ABOUT,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Show what a change would do and cost, and do nothing.

    Parameters
    ----------
    instance
        Its name or id.

    """
    wishes = Wishes(flavor=flavor, image=image, extras=extras, about=about)
    with where.open() as asked:
        found = find(asked, INSTANCE, instance)
        told = _planned(asked, found, wishes.body(asked, found))
        if output == "name":
            say(told["hash"])
        else:
            show_text(plan_text(told, room()) if output == "table" else dump(told, output))


def update(
    instance: str,
    /,
    *,
    flavor: Flavor = None,
    image: Image = None,
    extras: Extras = EXTRAS,
    about: About = ABOUT,
    yes: Yes = False,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Change an instance. What that does is shown first, and asked about if something is lost.

    Parameters
    ----------
    instance
        Its name or id.

    """
    wishes = Wishes(flavor=flavor, image=image, extras=extras, about=about)
    with where.open() as asked:
        found = find(asked, INSTANCE, instance)
        body, path = wishes.body(asked, found), f"{INSTANCE.path}/{id_of(found)}"

        def change(plan: str) -> Any:
            return asked.session.ask("PUT", INSTANCE.service, path, body, query={"plan": plan})

        tell = say if output == "table" else note
        changed = carry_out(_planned(asked, found, body), change, tell, yes=yes)
        name = found["metadata"]["name"]
        if changed is None:
            tell(f"Nothing of {name} would change: nothing was done.")
        reached = settled(asked, INSTANCE, changed or found, waiting=waiting)
        if changed is None and waiting.wait:
            tell(f"{name} is as it was asked to be.")
        if changed is not None or output != "table":
            show_instance(asked, reached, output)


def carry_out(
    told: Any,
    change: Callable[[str], Any],
    tell: Callable[[str], None],
    *,
    yes: bool,
    ask: Callable[[str], str] | None = None,
) -> Any:
    """Show a plan, have it agreed to and carry it out; as often as it is another one by then. None: nothing to do."""
    for _ in range(_ATTEMPTS):
        if not told["steps"]:
            return None
        tell(plan_text(told, room()))
        if told.get("blockers"):
            raise Unusable(f"Nothing was done. {told['blockers'][0]['sentence']}")
        if told["isDestructive"]:
            agreed(told["message"], yes=yes, ask=ask)
        try:
            return change(told["hash"])
        except (PlanChanged, PlanRequired) as refused:
            told = msgspec.json.decode(refused.plan)
            tell("The plan is another one by now:\n")
    raise Unusable("Somebody else goes on changing the instance: nothing was done, so agree with them and try again.")


def _planned(asked: Asked, found: Any, body: dict[str, Any]) -> Any:
    path = f"{INSTANCE.path}/{id_of(found)}"
    return asked.session.ask("PUT", INSTANCE.service, path, body, query={"dryRun": "true"})
