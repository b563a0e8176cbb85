"""``remuda security-group``."""

from typing import Annotated, Any

from cyclopts import Parameter

from remuda.cli.crud import change_one, delete_one, find, id_of, list_all, make_one, naming_holders, settled, show_found
from remuda.cli.lookup import HERE, Where
from remuda.cli.options import ABOUT, AT_ONCE, About, Many, Output, Waiting, Watch, Yes
from remuda.cli.resources import NETWORK, SECURITY_GROUP, parse_rule, rule_text
from remuda.kernel.errors import Invalid

_RULE = (
    "What may pass: ingress or egress; any, icmp, tcp, udp or vrrp; a port or several; an IPv4 prefix. The last "
    'two may be left out. Such as "ingress tcp 8000-8080 10.0.0.0/8". Say it again for another one.'
)
Allow = Annotated[tuple[str, ...], Parameter(help=_RULE, show_default=False)]


def list(  # noqa: A001  the command's name
    *, network: str | None = None, watch: Watch = False, output: Output = "table", where: Where = HERE
) -> None:
    """List the security groups of the project.

    Parameters
    ----------
    network
        Only those of this network, by name or id.

    """
    with where.open() as asked:
        more = {} if network is None else {"networkID": id_of(find(asked, NETWORK, network))}
        list_all(asked, SECURITY_GROUP, output, watch=watch, more=more)


def show(group: str, /, *, output: Output = "table", where: Where = HERE) -> None:
    """Show a security group.

    Parameters
    ----------
    group
        Its name or id.

    """
    with where.open() as asked:
        show_found(asked, SECURITY_GROUP, find(asked, SECURITY_GROUP, group), output)


def create(
    name: str,
    /,
    *,
    network: str,
    allow: Allow = (),
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Make a security group.

    Parameters
    ----------
    name
        What to call it.
    network
        The network whose instances can have it, by name or id.

    """
    rules = [parse_rule(text) for text in allow]
    with where.open() as asked:
        spec = {"networkId": id_of(find(asked, NETWORK, network)), "rules": rules}
        body = {"metadata": about.metadata({"name": name}), "spec": spec}
        show_found(asked, SECURITY_GROUP, make_one(asked, SECURITY_GROUP, body, waiting=waiting), output)


def update(
    group: str,
    /,
    *,
    allow: Allow = (),
    forbid: Many = (),
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Change what a security group lets pass.

    Parameters
    ----------
    group
        Its name or id.
    forbid
        A rule that it has and shall no longer have, as show writes it.

    """
    more = [parse_rule(text) for text in allow]
    fewer = [parse_rule(text, "--forbid") for text in forbid]

    def change(spec: dict[str, Any]) -> dict[str, Any]:
        return {**spec, "rules": _changed(spec.get("rules", []), more, fewer)}

    with where.open() as asked:
        changed = change_one(asked, SECURITY_GROUP, group, about, change)
        show_found(asked, SECURITY_GROUP, settled(asked, SECURITY_GROUP, changed, waiting=waiting), output)


def delete(group: str, /, *, yes: Yes = False, waiting: Waiting = AT_ONCE, where: Where = HERE) -> None:
    """Give up a security group. While an instance has it, it stays.

    Parameters
    ----------
    group
        Its name or id.

    """
    with where.open() as asked, naming_holders(asked, SECURITY_GROUP, group):
        delete_one(asked, SECURITY_GROUP, group, yes=yes, waiting=waiting)


def _changed(rules: Any, more: Any, fewer: Any) -> Any:
    """Return rules without some of them, and with others."""
    has = {rule_text(rule) for rule in rules}
    for rule in fewer:
        if rule_text(rule) not in has:
            remedy = f"its rules are {'; '.join(sorted(has)) or 'none'}"
            raise Invalid("--forbid", f"{rule_text(rule)!r} is no rule that it has", remedy=remedy)
    gone = {rule_text(rule) for rule in fewer}
    kept = [rule for rule in rules if rule_text(rule) not in gone]
    return kept + [rule for rule in more if rule_text(rule) not in has]
