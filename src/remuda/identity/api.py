"""API of identity as other services call it, in this process or over HTTP."""

from collections.abc import AsyncGenerator
from typing import Protocol

from remuda.access.principal import Context
from remuda.clients.watch import WatchMessage
from remuda.identity.quotas.schema import AllocationRead, AllocationWrite, QuotasRead, UsageQuery
from remuda.identity.tenancy.schema import ProjectRead


class IdentityApi(Protocol):
    """Routes of identity, by their names. A method that returns None ignores the response."""

    async def get_project(self, context: Context, organization: str, project: str) -> ProjectRead: ...

    async def add_project_reference(
        self, context: Context, organization: str, project: str, reference: str
    ) -> None: ...

    async def remove_project_reference(
        self, context: Context, organization: str, project: str, reference: str
    ) -> None: ...

    async def get_project_quotas(self, context: Context, organization: str, project: str) -> QuotasRead: ...

    def list_usage(self, context: Context, organization: str, query: UsageQuery) -> AsyncGenerator[AllocationRead]: ...

    async def create_allocation(
        self, context: Context, organization: str, project: str, body: AllocationWrite
    ) -> None: ...

    async def get_allocation(
        self, context: Context, organization: str, project: str, allocation: str
    ) -> AllocationRead: ...

    async def change_allocation(
        self,
        context: Context,
        organization: str,
        project: str,
        allocation: str,
        body: AllocationWrite,
        *,
        fencing_token: int | None = None,
    ) -> None: ...

    async def confirm_allocation(self, context: Context, organization: str, project: str, allocation: str) -> None: ...

    async def renew_allocation(
        self, context: Context, organization: str, project: str, allocation: str, *, fencing_token: int | None = None
    ) -> None: ...

    async def delete_allocation(
        self, context: Context, organization: str, project: str, allocation: str, *, fencing_token: int | None = None
    ) -> None: ...

    def watch_all_projects(self) -> AsyncGenerator[WatchMessage[ProjectRead]]: ...
