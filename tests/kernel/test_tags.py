import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag, TagSelector, parse_tag_selector

values = st.text().filter(lambda value: "=" not in value)


@given(values.filter(bool), values)
def test_a_written_selector_reads_back(name: str, value: str) -> None:
    assert parse_tag_selector(f"{name}={value}") == TagSelector(Tag(name, value))


def test_a_selector_matches_only_the_whole_tag() -> None:
    selector = parse_tag_selector("team=red")
    assert selector.matches([Tag("env", "test"), Tag("team", "red")])
    assert not selector.matches([Tag("team", "blue"), Tag("group", "red")])
    assert not selector.matches([])


@pytest.mark.parametrize("text", ["", "=", "=red", "team", "query=a=b", "team=red="])
def test_a_selector_without_a_name_or_exactly_one_equals_sign_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(Invalid, match="name=value") as caught:
        parse_tag_selector(text)
    assert caught.value.field == "tag"
