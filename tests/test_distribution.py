"""A worker takes a file as a whole, and each slice of seeds by itself."""

from tests.kit.distribution import FileOrSlice


def test_cases_of_a_file_stay_together_but_for_slices_of_seeds() -> None:
    scheduling = object.__new__(FileOrSlice)
    file, first, second = "tests/sim/test_x.py", "[seeds 0 to 39]", "[seeds 40 to 79]"
    cases = [f"{file}::test_a{first}", f"{file}::test_a{second}", f"{file}::test_b", f"{file}::test_c[seeds]"]
    assert [scheduling._split_scope(case) for case in cases] == [cases[0], cases[1], file, file]
