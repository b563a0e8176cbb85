"""Results that are computed once for an object."""

from remuda.kernel.memo import IdentityMemo


def test_a_result_is_computed_once_for_an_object_and_again_for_an_equal_one() -> None:
    computed: list[list[int]] = []

    def total(numbers: list[int]) -> int:
        computed.append(numbers)
        return sum(numbers)

    memo, one, other = IdentityMemo(total, limit=10), [1, 2], [1, 2]
    assert [memo(one), memo(one), memo(other)] == [3, 3, 3]
    assert computed == [one, other]


def test_it_keeps_no_more_than_its_limit() -> None:
    memo, many = IdentityMemo(len, limit=3), [[number] for number in range(10)]
    assert [memo(each) for each in many] == [1] * 10
    assert len(memo) <= 3
