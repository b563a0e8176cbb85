"""The room's handlers: each asks the service and renders what it says."""

from remuda.compute.recovery.service import Recovery
from remuda.http.routes import Call, Nothing


async def release(recovery: Recovery, call: Call[Nothing, Nothing, Nothing]) -> None:
    """Let what is nobody's be removed again."""
    await recovery.release(call.context)
