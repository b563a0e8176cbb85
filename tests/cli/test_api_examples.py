"""The examples of the documents are accepted by the running API, when their ids are replaced by those of objects."""

from pathlib import Path

from tests.kit.api_examples import STEPS, first_caller


def test_every_example_that_needs_no_more_than_a_first_start_is_accepted(tmp_path: Path) -> None:
    with first_caller(tmp_path) as caller:
        for name in STEPS:
            reply = caller.take(name)
            assert reply.is_success, f"{name}: {reply.status_code} {reply.text}"
