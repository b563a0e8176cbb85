"""What a provider says when it says no, beside that something is not there, or there already."""

from remuda.kernel.errors import RemudaError

# ruff: noqa: N818  these names are read as what happened; "Error" at the end of each would add nothing


class WrongState(RemudaError):
    """Raised when a thing is not in a state in which it can do this; wait until it is, or bring it there."""

    code = "wrong_state"
    status = 400

    def __init__(self, kind: str, name: str, *, state: str) -> None:
        super().__init__(f"The {kind} {name} is {state} and cannot do this now: look at its state, then try again.")
        self.kind, self.name, self.state = kind, name, state


class NoCapacity(RemudaError):
    """Raised when a provider has no room for it; choose another flavor or region, or wait until something goes."""

    code = "no_capacity"
    status = 503
    retry = True

    def __init__(self, what: str) -> None:
        super().__init__(f"There is no capacity left for {what}: choose another, or try again later.")
        self.what = what


class InUse(RemudaError):
    """Raised when something else still needs it; remove that first."""

    code = "in_use"
    status = 409

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} is in use: remove what uses it first.")
        self.kind, self.name = kind, name


class Refused(RemudaError):
    """Raised when a provider will not do it, now or later, as it was asked; ask for something else."""

    code = "refused"
    status = 422

    def __init__(self, why: str) -> None:
        super().__init__(f"The provider refuses: {why}.")
