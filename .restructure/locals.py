"""Rename parameters and local variables of test functions by the class of their annotation (else by what the file imports)."""
import ast, builtins, collections, re, sys
from pathlib import Path
BY_TYPE = {'ComputeEnvironment': 'compute', 'RegionEnvironment': 'region', 'IdentityEnvironment': 'identity', 'LoginEnvironment': 'logins',
 'LoginServices': 'services', 'IssuerEnvironment': 'external_issuer', 'AuthenticatorEnvironment': 'authentication', 'PermissionEnvironment': 'permissions',
 'TenancyApi': 'tenancy', 'TenancyControllers': 'tenancy', 'OAuthEnvironment': 'oauth', 'ServersEnvironment': 'region_servers', 'StorageEnvironment': 'region_storage',
 'NetworksEnvironment': 'region_networks', 'ImagesEnvironment': 'region_images', 'FlavorProvider': 'flavors', 'MachinePorts': 'machine', 'SagaEnvironment': 'sagas',
 'QuotaClient': 'quotas', 'Transport': 'transport', 'CallerCredentials': 'credentials', 'IdentityCredentials': 'credentials', 'Scope': 'scope', 'PipelineSample': 'service', 'BrowserSample': 'service',
 'SampleAuthenticator': 'authenticator', 'IdempotencyEnvironment': 'sample', 'SampleServer': 'server', 'SampleService': 'service', 'ScriptedSteps': 'steps', 'ManualTime': 'time',
 'IdentitySystem': 'system', 'RegionSystem': 'system', 'ComputeSystem': 'system', 'IdentityHistory': 'history', 'RegionHistory': 'history', 'ComputeHistory': 'history',
 'Farm': 'farm', 'IdentityApi': 'api', 'RegionApi': 'api', 'ResourceApi': 'api', 'AuditApi': 'api', 'CatalogueApi': 'api', 'ComputeSetup': 'setup', 'IdentitySetup': 'setup', 'RegionSetup': 'setup',
 'ProjectRef': 'payer', 'Expecting': 'system', 'PollingEnvironment': 'polling', 'ClassesEnvironment': 'classes', 'Tenant': 'tenant', 'ProcessPorts': 'ports', 'OURS': 'api'}
OLD = {'house', 'household', 'home', 'room', 'ground', 'stage', 'desk', 'site', 'yard', 'lobby', 'door', 'bed', 'paddock', 'ranch', 'meadow', 'gate', 'book', 'hands', 'shop', 'here', 'place'}
DEFAULT = {'house': ['ComputeEnvironment', 'RegionEnvironment', 'IdentityEnvironment', 'ComputeSystem', 'RegionSystem', 'IdentitySystem'], 'room': ['TenancyApi', 'IdentityApi', 'RegionApi', 'BrowserSample'],
 'ground': ['NetworksEnvironment', 'ImagesEnvironment', 'PermissionEnvironment', 'MachinePorts', 'ComputeSetup', 'IdentitySetup', 'RegionSetup'], 'stage': ['SagaEnvironment', 'TenancyControllers'], 'desk': ['OAuthEnvironment', 'QuotaClient'],
 'site': ['StorageEnvironment'], 'yard': ['ServersEnvironment'], 'lobby': ['IssuerEnvironment'], 'door': ['AuthenticatorEnvironment', 'Transport'], 'bed': ['IdempotencyEnvironment'], 'paddock': ['PipelineSample'], 'home': ['LoginEnvironment', 'Tenant'],
 'hands': ['ScriptedSteps', 'ManualTime'], 'gate': ['CallerCredentials', 'IdentityCredentials'], 'book': ['ComputeHistory', 'RegionHistory', 'IdentityHistory'], 'here': ['Farm'], 'shop': ['FlavorProvider']}
BYDIR = {('compute','house'):'compute',('compute','home'):'tenant',('identity','house'):'identity',('authz','house'):'identity',('kubernetes','house'):'compute',('identity','room'):'tokens'}
FIXED = {'stage': 'sagas', 'yard': 'region_servers', 'site': 'region_storage', 'here': 'farm', 'door': 'transport', 'gate': 'credentials'}
skipped = collections.Counter()
for path in sorted(Path('tests').rglob('*.py')):
    if 'example' in path.parts or 'livery' in path.name or path.parts[1] in ('links', 'clients'): continue
    text = path.read_text(); tree = ast.parse(text); lines = text.split('\n')
    classes = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)} | {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    globals_ = {a.asname or a.name for n in tree.body if isinstance(n, (ast.ImportFrom, ast.Import)) for a in n.names} | {n.name for n in tree.body if hasattr(n, 'name')} | {t.id for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign)) for t in (n.targets if isinstance(n, ast.Assign) else [n.target]) if isinstance(t, ast.Name)}
    edits = set()
    def at(node): return len(lines[node.lineno - 1].encode()[:node.col_offset].decode())
    def outer(node, inside):
        for c in ast.iter_child_nodes(node):
            if isinstance(c, (ast.FunctionDef, ast.AsyncFunctionDef)): handle(c)
            else: outer(c, inside)
    def handle(fn):
        args = [a for n in ast.walk(fn) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for a in [*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs]]
        stored = {n.id for n in ast.walk(fn) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | {a.arg for a in args}
        used = {n.id for n in ast.walk(fn) if isinstance(n, ast.Name)} | stored
        for old in OLD & stored:
            kinds = {m for a in args if a.arg == old and a.annotation for m in re.findall(r'\w+', ast.unparse(a.annotation)) if m in BY_TYPE}
            if any(a.arg == old and a.annotation and not (set(re.findall(r'\w+', ast.unparse(a.annotation))) & set(BY_TYPE)) for a in args): skipped[f'{old}: other type']+=1; continue
            if not kinds:
                kinds = {k for k in DEFAULT.get(old, []) if k in classes}
                kinds = set(list(k for k in DEFAULT.get(old, []) if k in kinds)[:1])
            new = BY_TYPE[next(iter(kinds))] if len(kinds) == 1 else (BYDIR.get((path.parts[1], old)) or FIXED.get(old)) if not kinds else None
            if new is None: skipped[f'{path}:{fn.lineno} {old} unknown {kinds}'] += 1; continue
            if new in used or new in globals_:
                for other in ('environment', 'service', 'fixture'):
                    if other not in used and other not in globals_: break
                skipped[f'{path}:{fn.lineno} {old}->{new} taken, {other}'] += 1; new = 'environment' if 'environment' not in used | globals_ else None
                if new is None: continue
            used.add(new)
            for n in ast.walk(fn):
                if isinstance(n, ast.Name) and n.id == old: edits.add((n.lineno, at(n), old, new))
                if isinstance(n, ast.arg) and n.arg == old: edits.add((n.lineno, at(n), old, new))
            kwargs.add((fn.name, old, new))
    kwargs = set()
    outer(tree, None)
    for line, col, old, new in sorted(edits, reverse=True):
        row = lines[line - 1]; assert row[col:col + len(old)] == old, (path, line, col, old, row)
        lines[line - 1] = row[:col] + new + row[col + len(old):]
    if edits: path.write_text('\n'.join(lines))
for k, v in skipped.items(): print(v, k)
