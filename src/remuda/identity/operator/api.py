"""The room's route. It is public: what is sent is the proof."""

from remuda.http.routes import AnyRoute, Route
from remuda.identity.operator import handlers
from remuda.identity.operator.wire import PATH, OperatorTokenRead, OperatorTokenWrite


def routes() -> list[AnyRoute]:
    return [
        Route(
            method="POST",
            path=PATH,
            name="create_operator_token",
            summary="Issue a short token to an operator on the machine itself",
            description="For `remuda token issue`: the request is sealed with the keys of this system, good for a "
            "minute and once. Who asked, for whom and why is audited.",
            scope="public",
            handler=handlers.create_token,
            body_type=OperatorTokenWrite,
            answer_type=OperatorTokenRead,
            errors=(401,),
            holds_secret=True,
            tag="operator",
        )
    ]
