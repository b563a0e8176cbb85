"""What a provider may be asked: one small Protocol for each capability, over types that belong to no provider.

**Names.** Everything at a provider has a name that we derive from our ids (see `names`), inside a tenancy. A provider
refuses a second thing of the same name, so a lost answer cannot double anything: look for the name, and you know.

**Effects.** `converge` makes or mends what is named, and may be repeated. `create` makes, or raises AlreadyExists.
`remove` is fine with what is not there. All may end late or unheard: who calls goes through `providers.calls`.

**Unknown is not absent.** A read says what is there as the provider saw it, perhaps a little ago. `find` returns None
for what is not there; whoever draws a conclusion from that looks twice (see `providers.absences`).

**Errors.** A provider raises NotFound, AlreadyExists, WrongState, NoCapacity, InUse or Refused when it says no, and
Unavailable when it cannot say. Sentences are for everybody's eyes: no address of the inside, no credential.
"""
