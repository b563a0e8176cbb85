"""rename.py TABLE…: rename symbols over src, tests, bench, tools and docs of the current directory, with mypy's knowledge.

Lines: `word OLD NEW`; `name remuda.mod.OLD NEW`; `attr remuda.mod.Class.OLD NEW` (methods, fields, parameters of constructors).
"""
import collections, os, re, sys, pathlib, ast
words, names, attrs, params, locals_ = {}, {}, {}, {}, {}
for table in sys.argv[1:]:
    for line in open(table):
        p = line.split('#')[0].split()
        if len(p) != 3: 
            if p: print('SKIP', line.strip())
            continue
        kind, old, new = p
        if kind == 'word': words[old] = new
        elif kind == 'name': names[old] = new.rpartition('.')[2]
        elif kind == 'param': params[old] = new
        elif kind == 'local': locals_[old] = new
        elif kind == 'attr': attrs[old] = new.rpartition('.')[2]
        else: print('SKIP', line.strip())
ROOTS = [r for r in ('src', 'tests', 'bench', 'tools') if os.path.isdir(r)]
edits = collections.defaultdict(set)   # path -> {(line, col, old, new)}
if names or attrs or params or locals_:
    from mypy import build, nodes, types as T
    from mypy.options import Options
    from mypy.modulefinder import BuildSource
    from mypy.config_parser import parse_config_file
    o = Options(); parse_config_file(o, lambda: None, 'pyproject.toml', sys.stdout, sys.stderr)
    o.export_types = True; o.preserve_asts = True; o.incremental = False; o.cache_dir = os.devnull
    srcs = []
    for r in ROOTS:
        base = 'src' if r == 'src' else '.'
        for p in pathlib.Path(r).rglob('*.py'):
            m = '.'.join(p.relative_to(base).with_suffix('').parts).removesuffix('.__init__')
            srcs.append(BuildSource(str(p), m, None))
    res = build.build(srcs, o)
    print('mypy errors', len(res.errors))
    by_attr = collections.defaultdict(dict)   # attr name -> {class fullname: new}
    for full, new in attrs.items():
        cls, _, a = full.rpartition('.'); by_attr[a][cls] = new
    by_name = names
    by_param = collections.defaultdict(dict)
    for full, new in params.items():
        fn, _, a = full.rpartition('.'); by_param[fn][a] = new
    param_names = {a for d in by_param.values() for a in d}
    def param_new(t, a):
        t = T.get_proper_type(t)
        if isinstance(t, T.Overloaded): return next((x for i in t.items if (x := param_new(i, a))), None)
        if not isinstance(t, T.CallableType): return None
        if t.is_type_obj():
            for b in t.type_object().mro:
                if a in by_param.get(b.fullname + '.__init__', {}): return by_param[b.fullname + '.__init__'][a]
        d = t.definition
        full = getattr(d, 'fullname', None)
        return by_param.get(full, {}).get(a)
    def family(info, a):
        """new name if info or a base (or a class that inherits) is in the table"""
        d = by_attr.get(a)
        if not d or info is None: return None
        for b in info.mro:
            if b.fullname in d: return d[b.fullname]
        return None
    def infos(t):
        t = T.get_proper_type(t)
        if isinstance(t, T.Instance): return [t.type]
        if isinstance(t, T.UnionType): return [i for x in t.items for i in infos(x)]
        if isinstance(t, T.TypeVarType): return infos(t.upper_bound)
        if isinstance(t, T.TypeType): return infos(t.item)
        if isinstance(t, T.TupleType): return infos(t.partial_fallback)
        if isinstance(t, T.CallableType) and t.is_type_obj(): return [t.type_object()]
        if isinstance(t, T.LiteralType): return infos(t.fallback)
        return []
    def cls_info(m, qual):
        tree = res.files[m]; cur = None
        names_ = tree.names
        for part in qual:
            sym = names_.get(part)
            if sym is None or not isinstance(sym.node, nodes.TypeInfo): return None
            cur = sym.node; names_ = cur.names
        return cur
    by_local = collections.defaultdict(dict)
    for full, new in locals_.items():
        fn, _, a = full.rpartition('.'); by_local[fn][a] = new
    fields_of = {}
    SKIPPED = {'node', 'info', 'var', 'type', 'unanalyzed_type', 'names', 'analyzed', 'expanded', 'definition', 'impl_', 'imports', 'alias_deps', 'fullname', 'corresponding_argument'}
    def fields(cls):
        if cls not in fields_of:
            fields_of[cls] = sorted({n for t in cls.__mro__ for n, d in vars(t).items() if type(d).__name__ in ('getset_descriptor', 'member_descriptor') and n not in SKIPPED and not n.startswith('__')})
        return fields_of[cls]
    def collect(root, out):
        seen, todo = set(), [root]
        while todo:
            o = todo.pop()
            if isinstance(o, (list, tuple)): todo.extend(o); continue
            if not isinstance(o, nodes.Node) or isinstance(o, nodes.TypeInfo) or id(o) in seen: continue
            seen.add(id(o))
            if isinstance(o, nodes.Expression):
                t = res.types.get(o)
                if t is not None: out.setdefault((o.line, o.column, o.end_line, o.end_column), t)
            for n in fields(type(o)):
                try: v = getattr(o, n)
                except AttributeError: continue
                if isinstance(v, (nodes.Node, list, tuple)): todo.append(v)
    for m, f in res.files.items():
        path = os.path.relpath(f.path) if os.path.isabs(f.path) else f.path
        if not any(path.startswith(r + '/') for r in ROOTS) or not path.endswith('.py'): continue
        text = open(path).read()
        tmap = {}
        collect(f, tmap)
        lines_ = text.split('\n')
        def col(line, off): return len(lines_[line - 1].encode()[:off].decode())
        def find(line, old, start=0):
            mm = re.compile(r'\b' + re.escape(old) + r'\b').search(lines_[line - 1], start)
            return mm.start() if mm else None
        def put(line, c, old, new):
            if c is not None: edits[path].add((line, c, old, new))
        def ty(n): 
            x = tmap.get((n.lineno, n.col_offset, n.end_lineno, n.end_col_offset))
            return infos(x) if x is not None else []
        def go(n, qual, infn):
            if isinstance(n, ast.ClassDef):
                info = cls_info(m, [*qual, n.name]) if not infn else None
                for st in n.body:
                    if isinstance(st, (ast.FunctionDef, ast.AsyncFunctionDef)) and family(info, st.name): put(st.lineno, find(st.lineno, st.name, st.col_offset + 3), st.name, family(info, st.name))
                    if isinstance(st, ast.AnnAssign) and isinstance(st.target, ast.Name) and family(info, st.target.id): put(st.lineno, st.col_offset, st.target.id, family(info, st.target.id))
                    if isinstance(st, ast.Assign) and any(isinstance(tg, ast.Name) and tg.id == '__slots__' for tg in st.targets):
                        for x in ast.walk(st.value):
                            if isinstance(x, ast.Constant) and family(info, x.value): put(x.lineno, col(x.lineno, x.col_offset) + 1, x.value, family(info, x.value))
                    if isinstance(st, ast.Assign):
                        for tg in st.targets:
                            if isinstance(tg, ast.Name) and family(info, tg.id): put(tg.lineno, tg.col_offset, tg.id, family(info, tg.id))
                    if isinstance(st, (ast.FunctionDef, ast.AsyncFunctionDef)) and st.name == '__init__':
                        for ar in [*st.args.args, *st.args.kwonlyargs]:
                            if family(info, ar.arg):
                                put(ar.lineno, col(ar.lineno, ar.col_offset), ar.arg, family(info, ar.arg))
                                for x in ast.walk(st):
                                    if isinstance(x, ast.Name) and x.id == ar.arg: put(x.lineno, col(x.lineno, x.col_offset), x.id, family(info, ar.arg))
                for c in ast.iter_child_nodes(n): go(c, [*qual, n.name], infn)
                return
            if isinstance(n, ast.Attribute) and n.attr in by_attr:
                new = next((x for i in ty(n.value) if (x := family(i, n.attr))), None)
                if new: put(n.end_lineno, col(n.end_lineno, n.end_col_offset) - len(n.attr), n.attr, new)
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and not infn:
                d = by_param.get('.'.join([m, *qual, n.name]), {})
                l = by_local.get('.'.join([m, *qual, n.name]), {})
                if l:
                    for x in ast.walk(n):
                        if isinstance(x, ast.Name) and x.id in l: put(x.lineno, col(x.lineno, x.col_offset), x.id, l[x.id])
                        if isinstance(x, ast.ExceptHandler) and x.name in l: put(x.lineno, find(x.lineno, x.name, lines_[x.lineno - 1].index(' as ')), x.name, l[x.name])
                        if isinstance(x, ast.arg) and x.arg in l: put(x.lineno, col(x.lineno, x.col_offset), x.arg, l[x.arg])
                for ar in [*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs]:
                    if ar.arg in d:
                        put(ar.lineno, col(ar.lineno, ar.col_offset), ar.arg, d[ar.arg])
                        for x in ast.walk(n):
                            if isinstance(x, ast.Name) and x.id == ar.arg: put(x.lineno, col(x.lineno, x.col_offset), x.id, d[ar.arg])
            if isinstance(n, ast.Call):
                for k in n.keywords:
                    if k.arg in param_names:
                        ft = tmap.get((n.func.lineno, n.func.col_offset, n.func.end_lineno, n.func.end_col_offset))
                        new = param_new(ft, k.arg) if ft is not None else None
                        if new: put(k.lineno, col(k.lineno, k.col_offset), k.arg, new); continue
                    if k.arg in by_attr:
                        fn = n.func
                        fname = fn.id if isinstance(fn, ast.Name) else getattr(fn, 'attr', '')
                        inf = ty(n.args[0]) if fname == 'replace' and n.args else ty(fn)
                        new = next((x for i in inf if (x := family(i, k.arg))), None)
                        if new: put(k.lineno, col(k.lineno, k.col_offset), k.arg, new)
            for c in ast.iter_child_nodes(n): go(c, qual, infn or isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))
        go(ast.parse(text), [], False)
        # annotations and imports: by ast with import resolution
        tree = ast.parse(text)
        local = {}
        for n in ast.walk(tree):
            if isinstance(n, ast.ImportFrom) and n.module:
                for a in n.names:
                    full = f'{n.module}.{a.name}'
                    if full in by_name:
                        edits[path].add((a.lineno, a.col_offset, a.name, by_name[full]))
                        if not a.asname: local[a.name] = by_name[full]
            elif isinstance(n, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and f'{m}.{n.name}' in by_name and n in tree.body: local[n.name] = by_name[f'{m}.{n.name}']
            elif isinstance(n, (ast.Assign, ast.AnnAssign)) and n in tree.body:
                for t in (n.targets if isinstance(n, ast.Assign) else [n.target]):
                    if isinstance(t, ast.Name) and f'{m}.{t.id}' in by_name:
                        local[t.id] = by_name[f'{m}.{t.id}']
                        if isinstance(n.value, ast.Call) and n.value.args and isinstance(n.value.args[0], ast.Constant) and n.value.args[0].value == t.id:
                            edits[path].add((n.value.args[0].lineno, n.value.args[0].col_offset + 1, t.id, local[t.id]))
        mods = {}
        for n in ast.walk(tree):
            if isinstance(n, ast.ImportFrom) and n.module:
                for a in n.names: mods[a.asname or a.name] = f'{n.module}.{a.name}'
        lines = text.split('\n')
        def shadowed(fn, nm): return any(a.arg == nm for a in [*fn.args.args, *fn.args.kwonlyargs, *fn.args.posonlyargs])
        def walk(node, hid):
            for c in ast.iter_child_nodes(node):
                h = hid
                if isinstance(c, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                    h = hid | {a.arg for a in [*c.args.args, *c.args.kwonlyargs, *c.args.posonlyargs]} | {x.id for x in ast.walk(c) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
                if isinstance(c, ast.Name) and c.id in local and c.id not in hid:
                    edits[path].add((c.lineno, len(lines[c.lineno - 1].encode()[:c.col_offset].decode()), c.id, local[c.id]))
                if isinstance(c, ast.Attribute) and isinstance(c.value, ast.Name) and f'{mods.get(c.value.id)}.{c.attr}' in by_name and c.value.id not in hid:
                    edits[path].add((c.end_lineno, len(lines[c.end_lineno - 1].encode()[:c.end_col_offset].decode()) - len(c.attr), c.attr, by_name[f'{mods[c.value.id]}.{c.attr}']))
                walk(c, h)
        walk(tree, frozenset())
        for n in tree.body:
            if isinstance(n, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and f'{m}.{n.name}' in by_name:
                mm = re.compile(r'\b' + n.name + r'\b').search(lines[n.lineno - 1], n.col_offset + (5 if isinstance(n, ast.ClassDef) else 3)); edits[path].add((n.lineno, mm.start(), n.name, by_name[f'{m}.{n.name}']))
n = 0
for path, es in edits.items():
    lines = open(path).read().split('\n')
    for line, col, old, new in sorted(es, reverse=True):
        row = lines[line - 1]
        if row[col:col + len(old)] == old: lines[line - 1] = row[:col] + new + row[col + len(old):]; n += 1
    open(path, 'w').write('\n'.join(lines))
print('edits', n, 'files', len(edits))
if words:
    pat = re.compile(r'(?<![\w])(' + '|'.join(map(re.escape, sorted(words, key=len, reverse=True))) + r')(?![\w])')
    k = 0
    files = [p for r in ROOTS for p in pathlib.Path(r).rglob('*.py') if p.name not in {'test_vocabulary.py', 'vocabulary.py'}] + [*pathlib.Path('docs').rglob('*.md'), *pathlib.Path('.').glob('*.md')]
    for p in files:
        t = p.read_text()
        if p.suffix == '.md': t2 = re.sub(r'`[^`\n]+`|```.*?```', lambda m: pat.sub(lambda x: words[x.group(1)], m.group()), t, flags=re.S)
        else: t2 = pat.sub(lambda x: words[x.group(1)], t)
        if t2 != t: p.write_text(t2); k += 1
    print('word files', k)
