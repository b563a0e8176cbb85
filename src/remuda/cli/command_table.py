"""The commands of people who use a Remuda: each noun with what can be done to it, and a line about each."""

from collections.abc import Mapping, Sequence
from typing import Final

Commands = Sequence[tuple[str, str]]

ALONE: Final[Commands] = [
    ("login:login", "Log in, so that all other commands know where to ask, and as whom."),
    ("login:logout", "End a login, and forget it here."),
]
"""Those without a noun: where the function is, and its line."""

NOUNS: Final[Mapping[str, tuple[str, Commands]]] = {
    "context": (
        "See the logins that there are, and choose.",
        [
            ("context:list", "List the logins."),
            ("context:use", "Use another login from now on."),
            ("context:set", "Work in another organization or project from now on."),
        ],
    ),
    "instance": (
        "Make, change and use instances.",
        [
            ("looking:list", "List the instances of the project."),
            ("looking:show", "Show an instance."),
            ("making:create", "Make an instance."),
            ("changing:plan", "Show what a change would do and cost, and do nothing."),
            ("changing:update", "Change an instance."),
            ("making:delete", "Give up an instance."),
            ("instance_actions:start", "Start an instance that is stopped."),
            ("instance_actions:stop", "Stop an instance."),
            ("instance_actions:reboot", "Reboot an instance."),
            ("instance_actions:console", "Print the address at which a browser sees its screen."),
            ("instance_actions:output", "Print what it wrote to its console."),
            ("instance_actions:ssh_key", "Print the private key that opens it."),
            ("instance_actions:snapshot", "Make an image of it."),
            ("past:timeline", "Show what happened to it, and what caused it."),
            ("past:explain", "Say why it is as it is."),
        ],
    ),
    "network": (
        "Make and change networks.",
        [
            ("network:list", "List the networks of the project."),
            ("network:show", "Show a network."),
            ("network:create", "Make a network."),
            ("network:update", "Change a network."),
            ("network:delete", "Give up a network."),
        ],
    ),
    "security-group": (
        "Say what may pass to and from instances.",
        [
            ("security_group:list", "List the security groups of the project."),
            ("security_group:show", "Show a security group."),
            ("security_group:create", "Make a security group."),
            ("security_group:update", "Change what it lets pass."),
            ("security_group:delete", "Give up a security group."),
        ],
    ),
    "ssh-ca": (
        "Say whose SSH certificates open instances.",
        [
            ("ssh_ca:list", "List the SSH certificate authorities of the project."),
            ("ssh_ca:show", "Show an SSH certificate authority."),
            ("ssh_ca:create", "Make one known."),
            ("ssh_ca:delete", "Forget one."),
        ],
    ),
    "image": (
        "See what instances can be made of, and add to it.",
        [
            ("image:list", "List the images that there are."),
            ("image:show", "Show an image."),
            ("image:import_", "Have an image fetched from elsewhere."),
            ("image:delete", "Give up an image."),
        ],
    ),
    "flavor": (
        "See how large instances can be.",
        [("flavor:list", "List the flavors that there are."), ("flavor:show", "Show a flavor.")],
    ),
    "region": (
        "See where networks and instances can be.",
        [("region:list", "List the regions that there are."), ("region:show", "Show a region.")],
    ),
    "quota": (
        "See how much there may be, and say it.",
        [
            ("quota:show", "Show how much there may be, and how much of that is used."),
            ("quota:set", "Change how much there may be."),
        ],
    ),
}
"""The others, by their noun: about the noun, and its commands."""
