"""The room's handler."""

from remuda.http.routes import Call, Nothing
from remuda.identity.operator.service import Operators
from remuda.identity.operator.wire import OperatorTokenRead, OperatorTokenWrite


async def create_token(operators: Operators, call: Call[Nothing, Nothing, OperatorTokenWrite]) -> OperatorTokenRead:
    return await operators.issue_sealed(call.context, call.body.request)
