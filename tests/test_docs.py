"""Pages of the documentation: programs run, tables agree with the code, and everything that a page names exists."""

import ast
import importlib
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from bench.groups import GROUPS
from remuda.access import checks
from remuda.compute.history.reasons import REASONS
from remuda.http.errors import CONTRACT_WORDS, OWN_WORDS
from remuda.http.server.health import NotReady
from remuda.http.server.limits import HeadTooLarge, PathTooLong
from remuda.identity.quotas.ledger import BUILT_IN
from remuda.kernel import errors
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.catalogue import SimDurations
from remuda.providers.simulated.faults import FAULTS
from remuda.region.app import TABLE as REGION

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
EXPLANATION = ROOT / "docs" / "explanation"
FORMATS = ROOT / "tests" / "golden" / "formats"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ERROR_FIELDS = {"error", "code", "error_description", "problems", "trace_id", "plan"}
NEVER_ANSWERED = 415
OPERATION_EVENTS = {f"Operation{phase}" for phase in ("Started", "Undoing", "Done", "Undone", "Stuck", "Abandoned")}
UNSTATED = {"error", "internal"}
"""The root's code, which is nobody's, and that of what is no error of ours."""

_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_SOURCE = re.compile(r"# ((?:src|tests)/\S+\.py)\n(.*)", re.DOTALL)
_METRIC = re.compile(r"\bremuda_(?:build|http|log|loop|reconcile|operations?|provider|store)_[a-z_]+")
_PATH = re.compile(r"\b(?:src|tests|docs|bench)/[\w/.-]*\w")
_NAME = re.compile(
    r"\bremuda\.(?:access|app|cli|clients|cloudinit|compute|config|console|http|identity|kernel|operations|outbound"
    r"|process|providers|quota|reconcile|region|resources|store)"
    r"\b[\w.]*\w"
)
_TEST = re.compile(r"`(test_\w+)`")


READ = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *PAGES]
SUBJECTS = {
    "provider-calls": ["providers", "reconcile"],
    "openstack": ["providers", "region", "cli"],
    "reconcile": ["reconcile"],
    "operations": ["operations"],
    "store": ["store", "kernel"],
    "http-kernel": ["http", "access"],
    "quota-ledger": ["identity", "quota"],
    "authentication": ["identity", "access"],
    "region": ["region", "providers"],
    "instances": ["compute"],
    "plans": ["compute"],
    "timeline-and-explain": ["compute"],
    "tokens": ["identity", "access"],
    "identity-api": ["identity", "access", "http"],
    "quotas": ["identity", "quota"],
    "configuration": ["config"],
    "cli": ["cli"],
    "simulated-cloud": ["providers", "cli"],
    "errors": ["kernel", "http"],
    "http-api": ["http", "access", "resources"],
    "metrics": ["http", "reconcile", "operations", "providers", "compute", "identity", "kernel", "process"],
    "operate": ["cli", "config", "http"],
    "recover-an-orphan": ["region", "cli"],
    "read-a-timeline": ["compute"],
    "add-a-provider": ["providers", "region", "config"],
    "add-an-endpoint": ["http"],
    "add-a-command": ["cli"],
    "configure": ["config", "cli"],
    "federate": ["identity", "config"],
    "log-in": ["cli"],
    "import-an-image": ["region", "cli"],
}
"""Packages of the pages about a part of the program: a name that only other packages have is an old one here."""
OTHERS = {
    "BaseHTTPMiddleware": "Starlette",
    "blockOwnerDeletion": "Kubernetes",
    "kubectl": "Kubernetes",
    "grep": "a program",
    "TiB": "a unit",
    "ann": "the user of examples",
    "REMUDA_PORT": "a variable that Kubernetes sets",
    "REMUDA_SERVICE_HOST": "a variable that Kubernetes sets",
    "REMUDA_SERVER_LISTEN": "an example of an unknown variable",
}
"""Names in code font that this project does not define, each with whose they are."""

_FENCE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TOKEN = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[A-Za-z_]\w*")
_COMMENT = re.compile(r"(?:^|  )#.*$", re.MULTILINE)
_COINED = re.compile(r"\w*[A-Za-z]_+[A-Za-z]\w*|\w*[a-z][A-Z]\w*")
_FILE = re.compile(r"[\w/.-]*\w\.(?:py|txt)\b")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+\w")
_API_PATH = re.compile(r"(?:/(?:identity|region|compute))?/api/[\w/{}.$-]*[\w}]")
_TYPED = re.compile(r"(?:^|[$|(]) *(remuda [a-z].*)", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\w*<\w+>\w*")


def words_of(text: str) -> set[str]:
    """Return the names in a program or document: identifiers, and strings without a space, word by word."""
    tokens = set(_TOKEN.findall(text))
    return {word for token in tokens if " " not in token for word in _WORD.findall(token)}


def words_of_module(path: Path) -> set[str]:
    """Return the names in a module, without those in its docstrings and comments."""
    parts = path.read_text().split('"""')
    texts = [part for before, part in zip(parts[0::2], parts[1::2], strict=False) if before.rpartition("\n")[2].strip()]
    return words_of("\n".join(_COMMENT.sub("", part) for part in parts[0::2])) | set(_WORD.findall(" ".join(texts)))


@cache
def names_by_file() -> dict[str, set[str]]:
    """Return the names that each file of the program and its tools defines or uses."""
    paths = [path for part in ("src", "tests/kit", "tools", "bench") for path in (ROOT / part).rglob("*.py")]
    modules = {str(path.relative_to(ROOT)): words_of_module(path) for path in [*paths, *(ROOT / "tests").glob("*.py")]}
    pages = [*(ROOT / "src").rglob("*.html"), *(ROOT / "src").rglob("*.js"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    return modules | {str(path.relative_to(ROOT)): set(_WORD.findall(path.read_text())) for path in pages}


@cache
def files() -> frozenset[str]:
    """Return the files and modules of the project."""
    parts = ("src", "tests", "tools", "bench", "docs")
    return frozenset(str(path.relative_to(ROOT)) for part in parts for path in (ROOT / part).rglob("*.*"))


@cache
def frozen_names() -> frozenset[str]:
    """Return the names of the formats."""
    return frozenset().union(*(words_of(path.read_text()) for path in FORMATS.glob("*.json")))


@cache
def known_names(subject: str) -> frozenset[str]:
    """Return the names that a page may use: those of its packages, or of all, and those of formats and files."""
    roots = tuple(f"src/remuda/{package}{end}" for package in SUBJECTS.get(subject, []) for end in "/.")
    found = (names for path, names in names_by_file().items() if not roots or path.startswith(roots))
    stems = {part.partition(".")[0] for path in files() for part in path.split("/")}
    return frozenset().union(*found) | frozen_names() | stems | {*OTHERS}


def unknown_names(page: Path) -> Iterator[str]:
    """Yield the names in code font that nothing has."""
    everywhere, here = known_names(""), known_names(page.stem)
    for span in _SPAN.findall(_FENCE.sub("", page.read_text())):
        text = _PLACEHOLDER.sub("", span)
        words = {
            word
            for word in _WORD.findall(text)
            if _COINED.fullmatch(word) or (word == span and word.isalpha() and word.islower())
        }
        is_elsewhere = "/" in span or span.startswith("remuda.")
        known = everywhere if is_elsewhere else here
        yield from (word for word in words if not word.startswith("test_") and word.removesuffix("_total") not in known)
        yield from (name for name in _FILE.findall(span) if "<" not in span and not is_file(name))


def is_file(name: str) -> bool:
    """Tell whether a file of the project has this path, or ends with it."""
    return any(f"/{path}".endswith(f"/{name.lstrip('/')}") for path in files())


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_name_in_code_font_exists(page: Path) -> None:
    assert sorted(set(unknown_names(page))) == []


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_setting_of_a_page_exists(page: Path) -> None:
    settings = {*json.loads((FORMATS / "configuration.json").read_text())}
    tables = {name.rpartition(".")[0] for name in settings}
    named = {span for span in _SPAN.findall(page.read_text()) if re.fullmatch(r"[a-z]+\.[a-z_]+", span)}
    assert {
        each for each in named if each.partition(".")[0] in tables and not each.endswith((".remuda", ".py"))
    } <= settings | tables


@cache
def served_paths() -> frozenset[str]:
    """Return the paths of the routes, with the prefix of their service and without, and with a star for a parameter."""
    found = set()
    for service in ("identity", "region", "compute", "process"):
        for path in json.loads((FORMATS / f"openapi-{service}.json").read_text())["paths"]:
            plain = re.sub(r"\{[^}]*\}", "*", path)
            found |= {plain, f"/{service}{plain}", plain.removeprefix(f"/{service}")}
    return frozenset(found)


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_path_of_a_page_is_served(page: Path) -> None:
    shown = {re.sub(r"\{[^}]*\}|\$\w+", "*", path) for path in _API_PATH.findall(page.read_text())}
    assert [path for path in shown if not any(is_below(path, served) for served in served_paths())] == []


def is_below(path: str, served: str) -> bool:
    """Tell whether a served path is this one, or continues it; a parameter stands for any segment."""
    segments, known = path.split("/"), served.split("/")
    return len(segments) <= len(known) and all(
        one in {other, "*"} or other == "*" for one, other in zip(segments, known, strict=False)
    )


def commands() -> dict[str, set[str]]:
    """Return the options of each command."""
    frozen = json.loads((FORMATS / "commands.json").read_text())["commands"]
    return {name: {option for each in options for option in each["names"]} for name, options in frozen.items()}


def typed_commands(page: Path) -> Iterator[str]:
    """Yield the commands of Remuda that a page shows, in blocks and in code font."""
    text = page.read_text()
    for language, block in re.findall(r"^ *```(\w*)\n(.*?)```", text, re.DOTALL | re.MULTILINE):
        if language in {"sh", "console", ""}:
            yield from _TYPED.findall(block.replace("\\\n", " "))
    yield from re.findall(r"^ {4,}(?:\$ )?(remuda [a-z].*)", text, re.MULTILINE)
    yield from (span for span in _SPAN.findall(_FENCE.sub("", text)) if span.startswith("remuda "))


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_command_of_a_page_has_its_options(page: Path) -> None:
    known = commands()
    groups = {name.partition(" ")[0] for name in known}
    for line in typed_commands(page):
        typed = line.removeprefix("remuda ").partition(" #")[0]
        name = next((each for each in known if f"{typed} ".startswith(f"{each} ")), None)
        assert name or typed in groups or not typed[0].isalpha(), line
        used = {option.replace("--no-", "--") for option in _OPTION.findall(typed.partition("|")[0])}
        assert used <= known.get(name or "", set()) | {"--help", "--version"}, line


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_tool_of_a_page_can_be_run(page: Path) -> None:
    text = page.read_text()
    for module in re.findall(r"python -m ((?:bench|tools)[\w.]*)", text):
        assert find_spec(module), module
    for bench, group in re.findall(r"python -m bench (\w+) --only (\w+)", text):
        assert any(group in groups for groups in GROUPS[bench].values()), group


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each fenced block."""
    return _BLOCK.findall(page.read_text())


def snippets() -> Iterator[tuple[str, str]]:
    """Yield every piece of Python, with a name."""
    for page in PAGES:
        texts = [text for language, text in blocks(page) if language == "python"]
        yield from ((f"{page.name}-{number}", text) for number, text in enumerate(texts, start=1))


def programs() -> Iterator[tuple[str, str, str]]:
    """Yield every complete program with what it prints, which is the block after it."""
    for page in PAGES:
        for (language, text), (_, after) in pairwise([*blocks(page), ("", "")]):
            if language == "python" and is_program(text):
                yield page.name, text, after


def is_program(text: str) -> bool:
    return "asyncio.run(" in text


@pytest.mark.parametrize(("name", "text"), [*snippets()], ids=lambda value: value if "\n" not in value else "")
def test_a_snippet_is_a_program_or_stands_in_the_file_it_names(name: str, text: str) -> None:
    compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if is_program(text):
        return
    named = _SOURCE.fullmatch(text)
    assert named, "a snippet that is no program begins with the file it is from"
    path, quoted = named.groups()
    source = (ROOT / path).read_text()
    depths = (0, 4, 8, 12)
    assert any(textwrap.indent(quoted, " " * depth) in source for depth in depths), f"{path} says something else now"


@pytest.mark.parametrize(("page", "program", "printed"), list(programs()))
def test_a_program_prints_what_its_page_says(page: str, program: str, printed: str) -> None:
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert told.stdout == printed, page


def test_there_is_a_program_to_run() -> None:
    assert list(programs())


def test_the_table_of_errors_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \| (.+) \|$", (REFERENCE / "errors.md").read_text(), re.MULTILINE)
    words = {int(status): word for status, word, _ in rows}
    told = {(int(status), *code) for status, _, codes in rows for code in re.findall(r"`(\w+)`(\*?)", codes)}
    classes: list[type[errors.RemudaError]] = [*errors.ERRORS, HeadTooLarge, PathTooLong, NotReady]
    real = {(each.status, each.code, "*" if each.retry else "") for each in classes if each.code not in UNSTATED}
    assert told - {(500, "internal", "")} == real
    assert words | {NEVER_ANSWERED: CONTRACT_WORDS[NEVER_ANSWERED]} == {**CONTRACT_WORDS, **OWN_WORDS}


def test_every_error_code_is_described() -> None:
    told = re.findall(r"^\| `(\w+)` \| .+ \|$", (REFERENCE / "errors.md").read_text(), re.MULTILINE)
    named = [code for code in told if code not in ERROR_FIELDS]
    frozen = json.loads((FORMATS / "errors.json").read_text())
    assert sorted(named) == sorted({*frozen, "internal"} - {"error"})


def test_every_permission_check_is_explained() -> None:
    told = set(re.findall(r"`((?:is_)?allow(?:ed)?_\w+)`", (EXPLANATION / "http-kernel.md").read_text()))
    assert told == {name for name in vars(checks) if re.match(r"(is_)?allow", name)}


def test_the_metrics_of_the_pages_are_those_of_the_code() -> None:
    frozen = json.loads((FORMATS / "metrics.json").read_text())["metrics"]
    real = {f"{name}_total" if each["type"] == "counter" else name for name, each in frozen.items()}
    assert {name for page in PAGES for name in _METRIC.findall(page.read_text())} - real == set()


def test_the_page_of_metrics_has_every_one_with_its_type_and_labels() -> None:
    frozen = json.loads((FORMATS / "metrics.json").read_text())["metrics"]
    real = {
        f"{name}_total" if each["type"] == "counter" else name: (each["type"], each["labels"])
        for name, each in frozen.items()
    }
    text = (REFERENCE / "metrics.md").read_text()
    told = re.findall(r"^\| `(remuda_\w+)` \| (\w+) \| (.*?) ?\| .+ \|$", text, re.MULTILINE)
    assert {name: (kind, named(labels)) for name, kind, labels in told} == real


def test_the_values_of_a_label_are_those_of_the_code() -> None:
    frozen = json.loads((FORMATS / "metrics.json").read_text())["metrics"]
    real = {name: {value for label in each["labels"] for value in each.get(label, ())} for name, each in frozen.items()}
    text = (REFERENCE / "metrics.md").read_text()
    told = re.findall(r"^\| `(remuda_\w+)` \| \w+ \| .*? ?\| (.+) \|$", text, re.MULTILINE)
    meanings = {name.removesuffix("_total"): {*named(meaning)} for name, meaning in told}
    assert {name: meanings[name] for name, values in real.items() if values} == {
        name: values for name, values in real.items() if values
    }


def test_the_settings_of_provider_calls_are_those_of_the_code() -> None:
    told: dict[str, float] = {}
    for names, defaults, _ in rows("../explanation/provider-calls.md", "Setting | Default | Meaning"):
        told |= zip(
            (name.removeprefix("breaker.") for name in named(names)), map(float, defaults.split(", ")), strict=True
        )
    settings = asdict(CallSettings())
    assert told == settings.pop("breaker") | settings


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_everything_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    for path in _PATH.findall(text):
        assert (ROOT / path).exists(), path
    for name in _NAME.findall(text):
        assert is_there(name), name
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for test in _TEST.findall(text):
        assert f"def {test}(" in tests, test


@pytest.mark.parametrize("page", ["http-kernel.md", "quota-ledger.md"])
def test_the_modules_of_a_table_exist(page: str) -> None:
    text = (EXPLANATION / page).read_text()
    ((package, table),) = re.findall(r"^\| (?:File|Module) of `(remuda[\w.]+)` \|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    files = [name for line in table.splitlines()[1:] for name in named(line.split(" | ")[0])]
    root = ROOT / "src" / Path(*package.split("."))
    assert files
    assert [name for name in files if not (root / name).exists()] == []


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, line by line."""
    text = (REFERENCE / page).read_text()
    table = text.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_paths_of_region_are_those_of_the_code() -> None:
    told = [name for path, _ in rows("region.md", "Path") for name in named(path)]
    real = [route.path.split("/")[3] for route in REGION.routes if route.path.startswith("/api/v2/")]
    assert sorted(told) == sorted(set(real))


def test_the_deprecated_paths_of_region_are_not_there() -> None:
    below = re.compile(r"/api/v1/organizations/\{\w+\}/(projects|identities|networks|securitygroups|servers)\b")
    assert not [route.path for route in REGION.routes if below.match(route.path)]


def test_the_capabilities_of_the_page_are_those_that_a_provider_can_have() -> None:
    told = [name for capability, _ in rows("region.md", "Capability") for name in named(capability)]
    assert sorted(told) == sorted({each.name for each in fields(Provider)} - {"type", "lag_s"})


def test_the_kinds_of_quota_that_region_holds_are_described() -> None:
    told = {name for kind, _ in rows("region.md", "Kind") for name in named(kind)}
    assert told == {"networks", "loadbalancers", "publicips", "filestorage"}
    assert all(BUILT_IN[kind].default > 0 for kind in told), "a fresh organization can have one"


def test_the_groups_of_benchmarks_are_those_of_the_code() -> None:
    told: dict[str, list[str]] = {}
    for bench, groups, _ in rows("benchmarks.md", "Benchmark | Groups"):
        told.setdefault(named(bench)[0] if bench else [*told][-1], []).extend(named(groups))
    assert told == {name: [group for each in backends.values() for group in each] for name, backends in GROUPS.items()}


def test_the_times_and_faults_of_the_simulated_cloud_are_those_of_the_code() -> None:
    times = {named(name)[0]: float(default) for name, default, *_ in rows("simulated-cloud.md", "In `[times]`")}
    assert times == asdict(SimDurations())
    assert [named(name)[0] for name, _ in rows("simulated-cloud.md", "Fault")] == list(FAULTS)


def test_every_event_of_a_timeline_is_described_with_its_facts() -> None:
    page = "timeline-and-explain.md"
    text = (REFERENCE / page).read_text()
    lines = re.findall(r"^\| (`[A-Z]\w+`.*?) \| ((?:`\w+`(?:, )?)*) ?\| .+ \|$", text, re.MULTILINE)
    told = {event: {*named(facts)} for events, facts in lines for event in named(events)}
    frozen = json.loads((FORMATS / "timeline.json").read_text())["events"]
    chosen = {event: {*facts} for event, facts in frozen.items() if event != "{}"}
    assert {*chosen} <= {*told}
    assert {event for event in told if event not in chosen} == {*OPERATION_EVENTS, "Replacing"}
    assert all(told[event] <= facts for event, facts in chosen.items())


def test_the_reasons_of_the_page_are_those_of_the_code() -> None:
    lines = rows("timeline-and-explain.md", "Reason | `resolvedBy`")
    assert {named(reason)[0]: who for reason, who, _ in lines} == {
        word: each.resolver for word, each in REASONS.items()
    }
    others = {word for reason, _ in rows("timeline-and-explain.md", "Reason | Meaning") for word in named(reason)}
    frozen = json.loads((FORMATS / "conditions.json").read_text())
    assert others == {*frozen["reasons"]} - {*REASONS}
    types = [named(name)[0] for name, _ in rows("timeline-and-explain.md", "Type | Meaning")]
    assert sorted(types) == frozen["types"]


def is_there(name: str) -> bool:
    """Tell whether a dotted name is a module, or something in one."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return bool(module) and hasattr(importlib.import_module(module), attribute)
    return True


def test_json_on_how_to_pages_is_json() -> None:
    pages = sorted((ROOT / "docs" / "how-to").glob("*.md"))
    texts = [text for page in pages for language, text in blocks(page) if language == "json"]
    assert texts
    assert all(json.loads(text) for text in texts)
