"""``remuda instance plan`` and ``update``: what a change would do, and the change.

No change is made whose plan was not shown. It is made under the plan's hash, so what is done is what was told; if the
instance has changed meanwhile, the plan that it is now is shown and asked about.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from remuda.cli.commands.instance import EXTRAS, Extras, Flavor, Image, Wishes
from remuda.cli.commands.looking import show_instance
from remuda.cli.commands.plans import plan_text
from remuda.cli.crud import agreed, find, id_of, settled
from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.options import ABOUT, AT_ONCE, About, Output, Waiting, Yes
from remuda.cli.output import note, room, say
from remuda.cli.output import show as show_text
from remuda.cli.resources import INSTANCE
from remuda.cli.showing.formats import dump
from remuda.kernel.errors import PlanChanged, PlanRequired, Unusable

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
            agreed(told["sentence"], yes=yes, ask=ask)
        try:
            return change(told["hash"])
        except (PlanChanged, PlanRequired) as refused:
            told = msgspec.json.decode(refused.plan)
            tell("The plan is another one by now:\n")
    raise Unusable("Somebody else goes on changing the instance: nothing was done, so agree with them and try again.")


def _planned(asked: Asked, found: Any, body: dict[str, Any]) -> Any:
    path = f"{INSTANCE.path}/{id_of(found)}"
    return asked.session.ask("PUT", INSTANCE.service, path, body, query={"dryRun": "true"})
