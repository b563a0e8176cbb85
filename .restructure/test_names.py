"""Rename test modules (test_names.txt) and rewrite every mention of them."""
import re, subprocess
from pathlib import Path
table = {}
for line in Path(__file__).with_name("test_names.txt").read_text().splitlines():
    old, new = line.split(); d, _, name = old.rpartition("/")
    table[f"{d}/test_{name}"] = f"{d}/test_{new}"
for a, b in table.items():
    if Path(f"tests/{a}.py").exists():
        assert not Path(f"tests/{b}.py").exists(), b
        subprocess.run(["git", "mv", f"tests/{a}.py", f"tests/{b}.py"], check=True)
bare = {}
names = [p.name for p in Path("tests").rglob("test_*.py")]
for a, b in table.items():
    n = Path(a).name + ".py"
    if n not in names: bare[n] = Path(b).name + ".py" if n not in bare else None
roots = [p for r in ("tests", "bench", "tools", "docs", "src") for p in Path(r).rglob("*") if p.suffix in {".py", ".md", ".json", ".txt"}]
roots += [Path(n) for n in ("Makefile", "pyproject.toml", "README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
slashed = re.compile(r"\btests/((?:\w+/)+test_\w+)\b"); dotted = re.compile(r"\btests((?:\.\w+)+\.test_\w+)\b"); alone = re.compile(r"(?<![\w/])test_\w+\.py\b"); short = re.compile(r"(?<![\w/.])(\w+/test_\w+)\b")
for p in roots:
    t = p.read_text()
    n = slashed.sub(lambda m: "tests/" + table.get(m[1], m[1]), t)
    n = dotted.sub(lambda m: "tests" + table.get(m[1].replace(".", "/")[1:], m[1].replace(".", "/")[1:]).join(["/", ""]).replace("/", "."), n)
    n = short.sub(lambda m: table.get(m[1], m[1]), n)
    if p.suffix == ".md": n = alone.sub(lambda m: bare.get(m[0]) or m[0], n)
    if n != t: p.write_text(n)
print(bare)
