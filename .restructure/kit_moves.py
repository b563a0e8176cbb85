"""Move shared test code into tests/kit (layout.md 4.1), one file to one file, and rewrite every mention.

usage (root of a clean worktree): python3 /tmp/rs/kit_moves.py [--plain]
`--plain` uses os.rename instead of `git mv` (scratch copies). Then: ruff check --select I,F401 --fix tests bench tools; ruff format.
"""
import os, re, subprocess, sys
from pathlib import Path

PLAIN = "--plain" in sys.argv
SIM = "loop disk platter faults lanes network runner machine store model slices".split()
IDENTITY = ("house household people_house room login_ground rights_ground rights_door rights_apart tenancy_room tenancy_stage "
            "tokens_desk external_issuer upstream_ground proving").split()
REGION = ("house room networks_ground servers_ground holdings_ground images_ground monitor_ground shop identity_port "
          "networks_asking filestorage_asking loadbalancers_asking").split()
COMPUTE = "house ways apart controlling asking changing stores".split()
MOVES = {f"sim/{n}": f"kit/simulation/{n}" for n in SIM}
MOVES |= {f"identity/{n}": f"kit/identity/{n}" for n in IDENTITY}
MOVES |= {f"region/{n}": f"kit/region/{n}" for n in REGION}
MOVES |= {f"compute/{n}": f"kit/compute/{n}" for n in COMPUTE}
MOVES |= {f"example/{n}": f"kit/asgi/{n}" for n in ("client", "contract", "validating", "asking")}
MOVES |= {"wire/judge": "kit/asgi/judge", "example/flaky": "kit/faulty_watch", "example/watchdog": "kit/watchdog",
          "example/hosting": "kit/hosting", "forking": "kit/forking", "rows": "kit/rows"}
for s in ("identity", "region", "compute"):
    for p in sorted(Path("tests", s).glob("sim_*.py")):
        MOVES[f"{s}/{p.stem}"] = f"kit/sim_{s}/{p.stem.removeprefix('sim_')}"
MOVES = {a: b for a, b in MOVES.items() if Path(f"tests/{a}.py").exists()}

for old, new in MOVES.items():
    target = Path(f"tests/{new}.py")
    target.parent.mkdir(parents=True, exist_ok=True)
    if PLAIN:
        os.rename(f"tests/{old}.py", target)
    else:
        subprocess.run(["git", "mv", f"tests/{old}.py", str(target)], check=True)

dotted = {"tests." + a.replace("/", "."): "tests." + b.replace("/", ".") for a, b in MOVES.items()}
slashed = {f"tests/{a}.py": f"tests/{b}.py" for a, b in MOVES.items()}
DOTTED = re.compile(r"\btests(?:\.\w+)+")
SLASHED = re.compile(r"\btests/[\w/]+\.py\b")
FROM = re.compile(r"^(\s*)from (tests(?:\.\w+)*) import ([^(\n#]+)$", re.M)


def rewritten_name(found):
    parts = found[0].split(".")
    for n in range(len(parts), 1, -1):  # the longest module that moved; what follows is a name in it
        new = dotted.get(".".join(parts[:n]))
        if new:
            return ".".join([new, *parts[n:]])
    return found[0]


def packages(found):
    """`from tests.sim import runner` names a module that may have moved."""
    indent, package, names = found.groups()
    if package in dotted:
        return found[0]
    stay, moved = [], []
    for name in (each.strip() for each in names.split(",")):
        bare, _, alias = name.partition(" as ")
        new = dotted.get(f"{package}.{bare}")
        if new is None:
            stay.append(name)
            continue
        where, _, last = new.rpartition(".")
        moved.append(f"{indent}from {where} import {last}" + (f" as {alias or bare}" if (alias or bare) != last else ""))
    return "\n".join(([f"{indent}from {package} import {', '.join(stay)}"] if stay else []) + moved)


roots = [p for r in ("tests", "bench", "tools", "docs", "src") for p in Path(r).rglob("*") if p.suffix in {".py", ".md"}]
roots += [Path(n) for n in ("Makefile", "pyproject.toml", "README.md", "hatch_build.py") if Path(n).exists()]
for path in roots:
    text = path.read_text()
    new = FROM.sub(packages, text) if path.suffix == ".py" else text
    new = SLASHED.sub(lambda m: slashed.get(m[0], m[0]), DOTTED.sub(rewritten_name, new))
    if new != text:
        path.write_text(new)
print(len(MOVES), "files moved")
forking = Path("tests/kit/forking.py")
forking.write_text(forking.read_text().replace("Path(__file__).parents[1]", "Path(__file__).parents[2]"))
