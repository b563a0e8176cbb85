"""Credentials of tenancies at OpenStack: they are sealed in the record of the identity, beside its key pair."""

from dataclasses import dataclass

from msgspec.structs import replace

from remuda.kernel.errors import NotFound
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import id_in
from remuda.region.kinds.networks import OpenstackIdentity
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True)
class TenancyCredentials:
    """Ids and secrets of application credentials, by the names of tenancies."""

    store: Store

    async def find(self, tenancy: str) -> tuple[str, Secret] | None:
        """Return id and secret of a tenancy's credential, or None if none is stored."""
        record = await find(self.store, OpenstackIdentity, id_in(tenancy))
        if record is None or record.spec.application_credential_secret is None:
            return None
        return record.spec.application_credential_id, record.spec.application_credential_secret

    async def put(self, tenancy: str, credential_id: str, secret: Secret) -> None:
        """Store a credential; raises NotFound for a tenancy whose identity is gone."""
        await self._write(tenancy, credential_id, secret)

    async def remove(self, tenancy: str) -> None:
        """Remove a credential, if one is stored."""
        try:
            await self._write(tenancy, "", None)
        except NotFound:
            return

    async def _write(self, tenancy: str, credential_id: str, secret: Secret | None) -> None:
        async def write() -> None:
            record = await self.store.get(OpenstackIdentity, id_in(tenancy))
            spec = replace(record.spec, application_credential_id=credential_id, application_credential_secret=secret)
            if spec != record.spec:
                await self.store.update(replace(record, spec=spec))

        await retry_on_conflict(write)
