"""The page docs/epsilon.md says what the library answers."""

import doctest
import pathlib


def test_page_runs():
    page = pathlib.Path(__file__).parents[2] / "docs" / "epsilon.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried >= 8
    assert failed == 0
