"""Who may log people in through us: operators register clients.

The right is `identity:oauth2providers`, held everywhere: the roles that existing clients know have no endpoint for
clients, and whoever may say where people come from may also say where they go. What is built in cannot be changed.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from remuda.access.checks import allow_everywhere
from remuda.access.principal import Context, Permission, Verb
from remuda.http.responses import Collection
from remuda.identity.kinds.oauth import OAUTH2_CLIENT, OAuth2Client
from remuda.identity.oauth.client_wire import (
    CLIENT_VIEW,
    ClientRead,
    ClientWrite,
    changed_client,
    check_client,
    new_client,
    writable_client,
)
from remuda.identity.oauth.clients import CLI
from remuda.identity.permissions import permission
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Forbidden, Invalid
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import check_state, until_written, witnessed
from remuda.store.contract import Store


def right(verb: Verb) -> Permission:
    """Return the right to do this to clients."""
    return permission("oauth2providers", verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Registers clients."""

    store: Store
    clock: Clock
    randomness: Randomness

    async def list(self, context: Context) -> Collection[OAuth2Client, list[ClientRead]]:
        allow_everywhere(context.principal, right("read"))
        return Collection(store=self.store, kind=OAuth2Client, view=CLIENT_VIEW)

    async def get(self, context: Context, client: str) -> OAuth2Client:
        allow_everywhere(context.principal, right("read"))
        return await self.store.get(OAuth2Client, client)

    async def create(self, context: Context, wanted: ClientWrite) -> tuple[OAuth2Client, Secret | None]:
        """Register a client, and return its secret this once; a public one, or one with a key, has none.

        Sent again after its answer was lost there is no secret either: rotate it.
        """
        allow_everywhere(context.principal, right("create"))
        check_client(wanted)
        secret = None if wanted.spec.is_public or wanted.spec.public_key else new_secret(self.randomness)
        secret_hash = "" if secret is None else token_hash(secret.reveal())
        client = new_client(context.operation, wanted, context.principal, secret_hash=secret_hash)
        try:
            return await self.store.create(client, log=witnessed(context, OAUTH2_CLIENT.plural, client)), secret
        except AlreadyExists:
            return await self.store.get(OAuth2Client, client.name), None

    async def update(self, context: Context, client: str, wanted: ClientWrite) -> OAuth2Client:
        """Replace what an operator may change of a client."""
        allow_everywhere(context.principal, right("update"))
        check_client(wanted)

        async def change() -> OAuth2Client:
            found = await self._own(context, client)
            changed = changed_client(found, wanted, context.principal, self.clock.now())
            return await self.store.update(changed, log=witnessed(context, OAUTH2_CLIENT.plural, found))

        return await until_written(change)

    async def rotate(self, context: Context, client: str) -> tuple[OAuth2Client, Secret]:
        """Give a client a new secret, and return it this once. The old one is good no more."""
        allow_everywhere(context.principal, right("update"))
        secret = new_secret(self.randomness)

        async def change() -> OAuth2Client:
            found = await self._own(context, client)
            if found.spec.is_public:
                raise Invalid("the client", "is public and has no secret", remedy="set isPublic to false first")
            spec = replace(found.spec, secret_hash=token_hash(secret.reveal()))
            log = witnessed(context, OAUTH2_CLIENT.plural, found)
            return await self.store.update(replace(found, spec=spec), log=log)

        return await until_written(change), secret

    async def delete(self, context: Context, client: str) -> None:
        """Forget a client. Nobody logs in through it any more, and none of its refresh tokens is good."""
        allow_everywhere(context.principal, right("delete"))

        async def change() -> None:
            found = await self._own(context, client)
            log = witnessed(context, OAUTH2_CLIENT.plural, found)
            await self.store.delete(OAuth2Client, client, uid=found.uid, version=found.version, log=log)

        await until_written(change)

    async def _own(self, context: Context, client: str) -> OAuth2Client:
        found = await self.store.get(OAuth2Client, client)
        check_state(context, found, writable_client(found))
        if found.name == CLI:
            raise Forbidden(f"The client {CLI} is built in and cannot be changed: register one of your own.")
        return found
