"""Move the rest of the shared test code into tests/kit and name its modules by the field's words (kit_moves2.txt).

usage (root of a clean worktree): python3 .restructure/kit_moves2.py [--mentions]; then ruff check --select I,F401 --fix tests bench tools; ruff format.
`--mentions` rewrites only mentions: for a branch that was merged with moved modules.
"""
import re, subprocess, sys
from pathlib import Path

TABLE = [line.split() for line in Path(__file__).with_name("kit_moves2.txt").read_text().splitlines() if line]
ALL = {old: new for old, new in TABLE}
MOVES = {} if "--mentions" in sys.argv else {a: b for a, b in ALL.items() if Path(f"tests/{a}.py").exists()}
for old, new in MOVES.items():
    target = Path(f"tests/{new}.py")
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "mv", f"tests/{old}.py", str(target)], check=True)

dotted = {"tests." + a.replace("/", "."): "tests." + b.replace("/", ".") for a, b in ALL.items()}
slashed = {f"tests/{a}.py": f"tests/{b}.py" for a, b in ALL.items()}
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
