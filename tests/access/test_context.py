from remuda.access.principal import ANONYMOUS, Context


def test_a_context_without_an_audit_hook_records_nothing() -> None:
    context = Context(principal=ANONYMOUS, operation="x")
    assert list(context.audit("horses", "bella")) == []
    assert (context.trace_id, context.if_match) == ("0" * 32, None)
