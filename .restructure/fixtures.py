"""Turn scenario closures into fixture tests (layout.md 4.2).

usage: /tmp/rs/venv/bin/python /tmp/rs/fixtures.py [--dry] ROOT PATH...
"""
import re, sys, builtins
from pathlib import Path
import libcst as cst
import libcst.matchers as m
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor

sys.path.insert(0, str(Path(__file__).parent))
from fixtures_table import TABLE, PURE

DRY = "--dry" in sys.argv
args = [a for a in sys.argv[1:] if not a.startswith("--")]
ROOT, PATHS = Path(args[0]), args[1:]


class Refused(Exception):
    pass


def names_in(node):
    """Names read or bound in a subtree, but no attributes and no keywords."""
    found = []

    class V(cst.CSTVisitor):
        def visit_Attribute(self, n):
            n.value.visit(self)
            return False

        def visit_Arg(self, n):
            n.value.visit(self)
            return False

        def visit_Name(self, n):
            found.append(n.value)

    node.visit(V())
    return found


def keywords_in(node):
    return {a.keyword.value for a in m.findall(node, m.Arg(keyword=m.Name()))}


class Rename(cst.CSTTransformer):
    def __init__(self, names):
        self.names = names

    def leave_Attribute(self, old, new):
        return new.with_changes(attr=old.attr)

    def leave_Arg(self, old, new):
        return new.with_changes(keyword=old.keyword)

    def leave_Name(self, old, new):
        return new.with_changes(value=self.names.get(old.value, old.value))


def is_docstring(st):
    return m.matches(st, m.SimpleStatementLine(body=[m.Expr(m.SimpleString() | m.ConcatenatedString())]))


def comments(lines):
    return [l for l in lines if l.comment is not None]


def is_pure(node, forbidden):
    if set(names_in(node)) & forbidden:
        return False
    for call in m.findall(node, m.Call()):
        f = call.func
        name = f.value if isinstance(f, cst.Name) else f.attr.value if isinstance(f, cst.Attribute) else "?"
        if name not in PURE:
            raise Refused(f"option is a call: {name}")
    if m.findall(node, m.Await() | m.NamedExpr()):
        return False
    return True


def simple_value(node):
    return not m.findall(node, m.Call() | m.Await())


class Convert:
    def __init__(self, path):
        self.path = path
        rel = path.relative_to(ROOT).with_suffix("")
        self.module_name = ".".join(rel.parts)
        self.source = path.read_text()
        self.module = cst.parse_module(self.source)
        self.imported, self.local = {}, {}
        for st in self.module.body:
            if isinstance(st, cst.FunctionDef):
                self.local[st.name.value] = st
            if m.matches(st, m.SimpleStatementLine(body=[m.ImportFrom()])):
                imp = st.body[0]
                if isinstance(imp.names, cst.ImportStar):
                    continue
                mod = self.module.code_for_node(imp.module) if imp.module else ""
                for a in imp.names:
                    self.imported[(a.asname.name.value if a.asname else a.name.value)] = f"{mod}.{a.name.value}"
        self.module_names = set(self.imported) | set(self.local)
        self.owners = {}
        self.used_options = self.used_pytest = False
        self.local_fixtures = {}
        self.done, self.refused = [], []

    def entry(self, name):
        if name in self.local:
            return TABLE.get(f"{self.module_name}.{name}")
        return TABLE.get(self.imported.get(name, "?"))

    def convert(self, fn):
        body = list(fn.body.body)
        doc = [body.pop(0)] if body and is_docstring(body[0]) else []
        if len(body) < 2 or not (isinstance(body[-2], cst.FunctionDef) and body[-2].asynchronous):
            return fn
        before, closure, last = body[:-2], body[-2], body[-1]
        if not m.matches(last, m.SimpleStatementLine(body=[m.Expr(m.Call(args=[m.Arg(m.Name(closure.name.value)), m.ZeroOrMore()]))])):
            return fn
        call = last.body[0].value
        if not isinstance(call.func, cst.Name):
            return fn
        entry = self.entry(call.func.value)
        for f in entry["fixtures"] if entry else ():
            if self.owners.setdefault(f, call.func.value) != call.func.value:
                raise Refused(f"CONFLICT: fixture {f} stands for {self.owners[f]} and {call.func.value}")
        if entry is None:
            raise Refused(f"unknown launcher {self.imported.get(call.func.value, call.func.value)}")
        for d in fn.decorators:
            code = self.module.code_for_node(d.decorator)
            if not code.startswith(("pytest.mark.", "each(")) and not re.search(rf"^{re.escape(code)} = pytest\.mark\.", self.source, re.M):
                raise Refused(f"decorator {code.split('(')[0]}")
        if closure.decorators or comments(last.leading_lines) or last.trailing_whitespace.comment:
            raise Refused("comment or decorator at the closure or the launcher")
        params = [p.name.value for p in (*fn.params.params, *fn.params.kwonly_params)]
        if fn.params.star_kwarg or isinstance(fn.params.star_arg, cst.Param):
            raise Refused("odd parameters")
        bound = set(params)
        for st in before:
            if not m.matches(st, m.SimpleStatementLine(body=[m.Assign() | m.AnnAssign()])):
                raise Refused("statements before")
            value = st.body[0].value
            if value is None or not simple_value(value) or entry.get("many"):
                raise Refused("statements before")
            bound |= set(names_in(st)) - set(names_in(value))
            if m.findall(closure, m.Nonlocal()):
                raise Refused("nonlocal")
        # options
        options, positional = [], list(entry.get("args", []))
        for a in call.args[1:]:
            if a.star == "**" and is_pure(a.value, bound):
                options.append((None, a.value))
                continue
            if a.star:
                raise Refused("starred option")
            name = a.keyword.value if a.keyword else (positional.pop(0) if positional else None)
            if name is None:
                raise Refused("positional option")
            if not is_pure(a.value, bound):
                raise Refused(f"option {name} uses a name of the test")
            options.append((name, a.value))
        if before and any(name == "seeds" for name, _ in options):
            raise Refused("statements before, and several seeds")
        # parameters
        cparams = list(closure.params.params)
        fixtures = entry["fixtures"]
        if len(cparams) > len(fixtures):
            raise Refused("more parameters than fixtures")
        rename, new_params, unused = {}, [], []
        body_names = set(names_in(closure.body)) | {n for st in before for n in names_in(st)}
        for p, f in zip(cparams, fixtures):
            old = p.name.value
            if old.startswith("_") or old not in names_in(closure.body):
                unused.append(f)
                continue
            if call.func.value in self.local and f in self.module_names:
                raise Refused(f"fixture {f} is a name of the module")
            if old != f:
                if f in body_names or f in params:
                    raise Refused(f"name {f} is taken")
                if old in keywords_in(closure.body) and any(q.name.value == old for q in m.findall(closure.body, m.Param())):
                    raise Refused(f"{old} is also a nested parameter and a keyword")
                rename[old] = f
            elif f in params:
                raise Refused(f"name {f} is taken")
            annotation = p.annotation
            new_params.append(cst.Param(name=cst.Name(f), annotation=annotation))
        if unused and new_params:
            unused = []  # the others bring the environment
        inner = closure.body
        if not isinstance(inner, cst.IndentedBlock):
            raise Refused("closure on one line")
        inner = inner.visit(Rename(rename)) if rename else inner
        leading = [l for l in closure.leading_lines if l.comment is not None]
        stmts = list(inner.body)
        if stmts and leading:
            stmts[0] = stmts[0].with_changes(leading_lines=[*leading, *stmts[0].leading_lines])
        block = inner.with_changes(body=[*doc, *before, *stmts], header=fn.body.header)
        if inner.header.comment:
            raise Refused("comment behind the closure")
        decorators = list(fn.decorators)
        if unused:
            joined = ", ".join(f'"{u}"' for u in unused[:1])
            decorators.append(cst.Decorator(cst.parse_expression(f"pytest.mark.usefixtures({joined})")))
            self.used_pytest = True
        if options:
            decorators.append(
                cst.Decorator(
                    cst.Call(
                        cst.Name("options"),
                        [
                            cst.Arg(v, star="**") if k is None else cst.Arg(v, keyword=cst.Name(k), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")))
                            for k, v in options
                        ],
                    )
                )
            )
            self.used_options = True
        if call.func.value in self.local or ".test_" in self.imported.get(call.func.value, ""):
            used = 1 + max((i for i, p in enumerate(cparams) if fixtures[i] not in unused), default=0)
            have = self.local_fixtures.setdefault(call.func.value, set())
            for i, p in enumerate(cparams):
                if fixtures[i] in {q.name.value for q in new_params} | set(unused[:1]):
                    have.add((i, fixtures[i]))
        plain = [p.with_changes(comma=cst.MaybeSentinel.DEFAULT) for p in (*fn.params.params, *fn.params.kwonly_params)]
        boolean = lambda p: p.annotation is not None and m.matches(p.annotation.annotation, m.Name("bool"))
        kept = [p for p in plain if not boolean(p)]
        kwonly = [p for p in plain if boolean(p)]
        header = fn.body.header
        if header.comment and "FBT001" in header.comment.value:
            header = header.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
        block = block.with_changes(header=header)
        new_all = fn.params.with_changes(
            params=[*new_params, *kept], kwonly_params=kwonly, star_arg=cst.ParamStar() if kwonly else cst.MaybeSentinel.DEFAULT
        )
        return fn.with_changes(
            asynchronous=cst.Asynchronous(),
            decorators=decorators,
            params=new_all,
            body=block,
        )

    def run(self):
        out = []
        for st in self.module.body:
            if isinstance(st, cst.FunctionDef) and st.name.value.startswith("test_") and not st.asynchronous:
                try:
                    new = self.convert(st)
                except Refused as why:
                    self.refused.append((st.name.value, str(why)))
                    new = st
                if new is not st:
                    self.done.append(st.name.value)
                st = new
            out.append(st)
        if not self.done:
            return
        # local fixtures behind their launchers
        final = []
        foreign = [name for name in self.local_fixtures if name not in self.local]
        for st in out:
            names = [st.name.value] if isinstance(st, cst.FunctionDef) and st.name.value in self.local_fixtures else []
            if foreign and isinstance(st, (cst.FunctionDef, cst.ClassDef)):
                names, foreign, later = foreign, [], st
            else:
                final.append(st)
                later = None
            for launcher in names:
                first = True
                for position, fixture in sorted(self.local_fixtures[launcher]):
                    if re.search(rf"^{fixture} = provided_by\(", self.source, re.M):
                        continue
                    more = "".join(f', "{each}"' for each in self.entry(launcher).get("needed", []))
                    more += f", position={position}" if position else ""
                    line = cst.parse_statement(f"{fixture} = provided_by({launcher}{more})\n")
                    if first:
                        line = line.with_changes(leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)])
                    first = False
                    final.append(line)
            if later is not None:
                final.append(later)
        module = self.module.with_changes(body=final)
        context = CodemodContext()
        if self.used_options:
            AddImportsVisitor.add_needed_import(context, "tests.kit.environment", "options")
        if self.local_fixtures:
            AddImportsVisitor.add_needed_import(context, "tests.kit.environment", "provided_by")
        if self.used_pytest:
            AddImportsVisitor.add_needed_import(context, "pytest")
        module = AddImportsVisitor(context).transform_module(module)
        if not DRY:
            self.path.write_text(module.code)


total, refusals = 0, []
files = []
for p in PATHS:
    p = ROOT / p
    files += sorted(p.rglob("test_*.py")) if p.is_dir() else [p]
changed = []
for f in files:
    c = Convert(f)
    c.run()
    total += len(c.done)
    if c.done:
        changed.append(str(f.relative_to(ROOT)))
    refusals += [(str(f.relative_to(ROOT)), n, w) for n, w in c.refused]
for f, n, w in refusals:
    print(f"refused {f}::{n}: {w}")
print(f"{total} converted in {len(changed)} files, {len(refusals)} refused")
Path("/tmp/rs/changed.txt").write_text("\n".join(changed) + "\n")
