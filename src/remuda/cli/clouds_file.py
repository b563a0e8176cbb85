"""Clouds of the field's `clouds.yaml`, where every OpenStack client looks for it.

The first file of its search path is read, and merged with the `secure.yaml` of the search path, which may have the
passwords.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.secrets import Secret

_FILE_VARIABLE = "OS_CLIENT_CONFIG_FILE"
_SECURE_VARIABLE = "OS_CLIENT_SECURE_FILE"
_EXTENSIONS = ("yaml", "yml", "json")
_PASSWORD_TYPES = frozenset({"", "password", "v3password"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEntry:
    """An entry of the file: the account that manages a domain."""

    endpoint: str
    region: str
    ca_certificate: str
    """PEM."""
    domain_id: str
    domain_name: str
    user_id: str
    user_name: str
    user_domain_name: str
    password: Secret


def read_cloud(name: str, path: Path | None, environment: Mapping[str, str] = os.environ) -> CloudEntry:
    """Return an entry of the given file, or of the first one of the search path."""
    found = path or next(_present("clouds", environment.get(_FILE_VARIABLE)), None)
    if found is None:
        remedy = "name it with --clouds-file, or set OS_CLIENT_CONFIG_FILE"
        raise Unusable(f"There is no clouds.yaml in {', '.join(map(str, _directories()))}: {remedy}.")
    entry = _entry(name, found, _load(found))
    secure = next(_present("secure", environment.get(_SECURE_VARIABLE)), None)
    if secure is not None:
        entry = _merged(entry, _load(secure).get("clouds", {}).get(name, {}))
    return _cloud(f"{found}: clouds.{name}", entry)


def _directories() -> Sequence[Path]:
    return (Path(), Path.home() / ".config" / "openstack", Path("/etc/openstack"))


def _present(stem: str, chosen: str | None) -> Iterator[Path]:
    if chosen:
        yield Path(chosen)
    for directory in _directories():
        for extension in _EXTENSIONS:
            path = directory / f"{stem}.{extension}"
            if path.is_file():
                yield path


def _load(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  slow, and only these commands need it

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not text"
        raise Invalid("--clouds-file", f"{path} cannot be read ({cause})", remedy="name a clouds.yaml") from None
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" in line {line + 1}"
        raise Invalid("--clouds-file", f"{path} is not YAML{where}", remedy="correct it") from None
    return found if isinstance(found, dict) else {}


def _entry(name: str, path: Path, document: dict[str, Any]) -> dict[str, Any]:
    clouds = document.get("clouds")
    known = sorted(map(str, clouds)) if isinstance(clouds, dict) else []
    entry = clouds.get(name) if isinstance(clouds, dict) else None
    if not isinstance(entry, dict):
        raise Invalid("--cloud", f"{name} is not in {path}", remedy=f"it has {', '.join(known) or 'no clouds'}")
    return entry


def _merged(entry: dict[str, Any], secure: Any) -> dict[str, Any]:
    """Return an entry with what another file adds to it."""
    merged = dict(entry)
    for key, value in secure.items() if isinstance(secure, dict) else ():
        present = merged.get(key)
        merged[key] = _merged(present, value) if isinstance(present, dict) else value
    return merged


def _cloud(where: str, entry: dict[str, Any]) -> CloudEntry:
    auth = entry.get("auth")
    auth = {key: str(value) for key, value in auth.items() if value is not None} if isinstance(auth, dict) else {}
    if str(entry.get("auth_type", "")) not in _PASSWORD_TYPES:
        raise _invalid(where, f"has auth_type {entry['auth_type']}", "a region needs a user with a password")
    for keys in (("auth_url",), ("username", "user_id"), ("password",)):
        if not any(auth.get(key) for key in keys):
            raise _invalid(where, f"has no auth.{keys[0]}", f"add auth.{keys[0]}")
    if not (auth.get("domain_name") or auth.get("domain_id")):
        problem = "does not log in to a domain"
        raise _invalid(where, problem, "add auth.domain_name, the domain that the user manages, and no project")
    if entry.get("verify") in (False, "false", "False"):
        raise _invalid(where, "has verify: false", "name the authority of the cloud as cacert instead")
    return CloudEntry(
        endpoint=auth["auth_url"],
        region=str(entry.get("region_name") or ""),
        ca_certificate=_certificates(where, entry.get("cacert")),
        domain_id=auth.get("domain_id", ""),
        domain_name=auth.get("domain_name", ""),
        user_id=auth.get("user_id", ""),
        user_name=auth.get("username", ""),
        user_domain_name=auth.get("user_domain_name", ""),
        password=Secret(auth["password"]),
    )


def _certificates(where: str, path: object) -> str:
    if not path:
        return ""
    try:
        return Path(str(path)).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not text"
        raise _invalid(where, f"names a cacert that cannot be read ({cause})", "name a PEM file") from None


def _invalid(where: str, problem: str, remedy: str) -> Invalid:
    return Invalid("--cloud", f"{where} {problem}", remedy=remedy)
