"""extract.py MODULE TARGET NAME…: move module-level names, and what only they need, from a test module to a kit module."""
import ast, re, subprocess, sys
from pathlib import Path

source, target, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
path = lambda m: Path(m.replace(".", "/") + ".py")
text = path(source).read_text()
lines = text.splitlines(keepends=True)
tree = ast.parse(text)

def bound(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)): return [node.name]
    if isinstance(node, ast.Assign): return [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name): return [node.target.id]
    return []

def used(node): return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
    w for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str) for w in re.findall(r"^\w+$", n.value)}

definitions = {}
chunks = []  # (node, start, end)
body = tree.body
for i, node in enumerate(body):
    start = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])]) - 1
    end = node.end_lineno
    if bound(node) and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and i + 1 < len(body):
        following = body[i + 1]
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant) and isinstance(following.value.value, str):
            end = following.end_lineno
    for name in bound(node): definitions[name] = (node, start, end)
needed, todo = set(), list(wanted)
while todo:
    name = todo.pop()
    if name in needed or name not in definitions: continue
    assert not name.startswith("test_"), name
    needed.add(name); todo += used(definitions[name][0])
moved = sorted({definitions[n][1:] for n in needed})
assert set(wanted) <= needed, set(wanted) - needed
taken = "\n\n".join("".join(lines[a:b]) for a, b in moved)
last_import = max((n.end_lineno for n in body if isinstance(n, (ast.Import, ast.ImportFrom))), default=0)
first = body[0].end_lineno if isinstance(body[0], ast.Expr) else 0
imports = "".join(lines[first:last_import])
kept = "".join(l for i, l in enumerate(lines) if not any(a <= i < b for a, b in moved))
rest = ast.parse(kept)
still = {n.id for n in ast.walk(rest) if isinstance(n, ast.Name)} & needed
if still:
    kept = kept.replace(imports, imports + f"from {target} import {', '.join(sorted(still))}\n", 1)
path(source).write_text(kept)
out = path(target)
out.parent.mkdir(parents=True, exist_ok=True)
if out.exists():
    old = out.read_text(); t = ast.parse(old); ol = old.splitlines(keepends=True)
    end = max((n.end_lineno for n in t.body if isinstance(n, (ast.Import, ast.ImportFrom))), default=t.body[0].end_lineno)
    out.write_text("".join(ol[:end]) + imports + "".join(ol[end:]) + "\n\n" + taken)
else:
    out.write_text(f'"""TODO {target}."""\n' + imports + "\n\n" + taken)
for p in [p for r in ("tests", "bench") for p in Path(r).rglob("*.py")]:
    if p == path(source): continue
    s = p.read_text()
    def again(m):
        names = [n.strip() for n in m[1].strip("()\n ").split(",") if n.strip()]
        go = [n for n in names if n.split(" as ")[0] in needed]; stay = [n for n in names if n not in go]
        return "\n".join(([f"from {source} import {', '.join(stay)}"] if stay else []) + ([f"from {target} import {', '.join(go)}"] if go else [])) + "\n"
    new = re.sub(rf"^from {re.escape(source)} import (\([^)]*\)|[^\n]*)\n", again, s, flags=re.M)
    if new != s: p.write_text(new)
print(source, "->", target, sorted(needed))
