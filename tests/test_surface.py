"""Every module and every exported name has the sentence a newcomer needs."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import remuda


def modules() -> list[ModuleType]:
    found = [importlib.import_module(module.name) for module in pkgutil.walk_packages(remuda.__path__, "remuda.")]
    return [remuda, *found]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_a_module_explains_itself_and_what_it_exports(module: ModuleType) -> None:
    assert module.__doc__, "it has a docstring"
    exported = getattr(module, "__all__", None)
    if exported is None:
        assert hasattr(module, "__path__"), "only a package without names of its own may leave __all__ out"
        return
    assert sorted(exported, key=str.lower) == sorted(set(exported), key=str.lower)
    for name in exported:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name} has a docstring"
