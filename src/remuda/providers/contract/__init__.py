"""Contract of providers: one small Protocol for each capability, over types that are independent of any provider.

**Names.** Every object at a provider has a name derived from our ids (see `common`), within a tenancy. A provider
rejects a second object of the same name, so a lost response cannot create a duplicate: a lookup by name tells whether
the write happened.

**Writes.** `converge` creates or updates the named object and may be repeated. `create` creates it or raises
AlreadyExists. `remove` succeeds if the object does not exist. Each may end late or with an unknown outcome, so callers
go through `providers.calls`.

**Unknown is not absent.** A read returns the provider's view, which may be slightly stale. `find` returns None for an
object that the provider does not see; a caller that draws a conclusion from that reads twice (see `providers.absence`).

**Errors.** A provider raises NotFound, AlreadyExists, WrongState, NoCapacity, InUse or Rejected to deny a request, and
Unavailable when it cannot decide. Messages are shown to users: they contain no internal address and no credential.
"""
