"""Errors about an object as it was sent, as it is or as it is stored, and the base class of all errors."""

from typing import ClassVar


class RemudaError(Exception):
    """The base of all errors, never raised itself. Catch it where errors become responses or exit codes."""

    code: ClassVar[str] = "error"
    status: int = 500
    """Set by the class. Only OAuth 2, which has several for one kind of error, sets it per object."""
    retry: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


# ruff: noqa: N818  the names say what happened; the suffix "Error" would add nothing


class Invalid(RemudaError):
    """Raised when an input breaks a rule; the caller corrects the named field.

    Without a remedy the problem is the whole message: for rules whose wording existing clients know.
    """

    code = "invalid"
    status = 422

    def __init__(self, field: str, problem: str, *, remedy: str = "") -> None:
        super().__init__(f"{field} {problem}: {remedy}." if remedy else problem)
        self.field = field


class InsufficientCapacity(RemudaError):
    """Raised when a request needs more space than is left; choose another target, or retry when space is free."""

    code = "insufficient_capacity"
    status = 422

    def __init__(self, field: str, problem: str, *, remedy: str) -> None:
        super().__init__(f"{field} {problem}: {remedy}.")
        self.field = field


class NotFound(RemudaError):
    """Raised when no object of this kind has this name; check the name, or create the object."""

    code = "not_found"
    status = 404

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"There is no {kind} {name}: check the name, or create it first.")
        self.kind, self.name = kind, name


class AlreadyExists(RemudaError):
    """Raised by a create whose name is taken; use the object that is there, or choose another name."""

    code = "already_exists"
    status = 409

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} already exists: use it, or choose another name.")
        self.kind, self.name = kind, name


class Conflict(RemudaError):
    """Raised when a write names an outdated version or uid; read the object again and redo the change."""

    code = "conflict"
    status = 409
    retry = True

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} has changed since it was read: read it again and redo the change.")
        self.kind, self.name = kind, name


class ReferenceRejected(RemudaError):
    """Raised when an object refers to a target that is absent or being deleted; refer to another one."""

    code = "reference_rejected"
    status = 409

    def __init__(self, kind: str, name: str, *, target_kind: str, target: str) -> None:
        super().__init__(
            f"The {kind} {name} cannot use the {target_kind} {target}, which is absent or being deleted: name another."
        )
        self.kind, self.name = kind, name
        self.target_kind, self.target = target_kind, target


class OwnerRejected(RemudaError):
    """Raised when a child is written under an owner that is absent or being deleted; choose another owner."""

    code = "owner_rejected"
    status = 409

    def __init__(self, kind: str, name: str, *, owner: str) -> None:
        super().__init__(
            f"The {kind} {name} cannot belong to {owner}, which is absent or being deleted: choose another owner."
        )
        self.kind, self.name, self.owner = kind, name, owner


class Gone(RemudaError):
    """Raised when a watch asks for a version older than the change history; list, then watch from the list."""

    code = "gone"
    status = 410

    def __init__(self, kind: str, version: str) -> None:
        super().__init__(
            f"Changes of {kind} since version {version} are no longer known: "
            "list again, then watch from the version of that list."
        )
        self.kind, self.version = kind, version


class Unreadable(RemudaError):
    """Raised when a stored document does not fit its type: correct it, or restore it from a backup."""

    code = "unreadable"
    status = 500

    def __init__(self, kind: str, name: str, *, cause: str) -> None:
        super().__init__(f"The stored {kind} {name} cannot be read: {cause}. Make the document match its schema.")


class Unsealable(RemudaError):
    """Raised when a sealed field does not open: its key is missing or wrong, or the field was altered or moved."""

    code = "unsealable"
    status = 500

    def __init__(self, key_id: str) -> None:
        super().__init__(
            f"A field sealed with key {key_id} does not open: "
            "put the key it was sealed with back into the key file, or set the field again."
        )
        self.key_id = key_id


class Inconsistent(RemudaError):
    """Raised when there are none or several where there must be exactly one. Nothing is changed or guessed."""

    code = "inconsistent"
    status = 500

    def __init__(self, kind: str, name: str, *, part: str, found: int) -> None:
        super().__init__(
            f"The {kind} {name} has {found or 'no'} {part}s, and must have one: see its conditions and its timeline."
        )
        self.kind, self.name, self.found = kind, name, found
