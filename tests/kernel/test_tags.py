import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag, TagSelector, parse_tag_selector

names = st.text(min_size=1).filter(lambda name: "=" not in name)


@given(names, st.text())
def test_a_written_selector_reads_back(name: str, value: str) -> None:
    assert parse_tag_selector(f"{name}={value}") == TagSelector(Tag(name, value))


def test_a_value_may_hold_equals_signs() -> None:
    assert parse_tag_selector("query=a=b=").tag == Tag("query", "a=b=")


def test_a_selector_matches_only_the_whole_tag() -> None:
    selector = parse_tag_selector("team=red")
    assert selector.matches([Tag("env", "test"), Tag("team", "red")])
    assert not selector.matches([Tag("team", "blue"), Tag("group", "red")])
    assert not selector.matches([])


@pytest.mark.parametrize("text", ["", "=", "=red", "team"])
def test_a_selector_without_name_or_divider_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(Invalid, match="name=value") as caught:
        parse_tag_selector(text)
    assert caught.value.field == "tag"
