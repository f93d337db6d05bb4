"""The registry of plugins: built-ins, decorators, entry points, and plugins that can't be loaded."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from atp.base.registry import PluginError, Registry

GROUP = "atp.birds"


class Bird:
    """What the registry of these tests has."""

    names: tuple[str, ...] = ()


class Parrot(Bird):
    names = ("parrot", ".parrot")


class Crow(Bird):
    names = ("crow",)


@pytest.fixture
def birds() -> Registry[type[Bird]]:
    built_in = {"parrot": f"{__name__}:Parrot", ".parrot": f"{__name__}:Parrot", "gone": f"{__name__}:Gone"}
    return Registry(GROUP, built_in, lambda bird: bird.names)


def install(monkeypatch: pytest.MonkeyPatch, **places: str) -> list[str]:
    """Have these entry points installed. Returns the groups that are looked at from now on."""
    asked: list[str] = []

    def entry_points(group: str) -> list[EntryPoint]:
        asked.append(group)
        return [EntryPoint(name, place, group) for name, place in places.items()]

    monkeypatch.setattr("atp.base.registry.entry_points", entry_points)
    return asked


def test_a_built_in_is_found_without_looking_for_plugins(
    birds: Registry[type[Bird]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = install(monkeypatch, crow=f"{__name__}:Crow")
    assert birds.find("parrot") is birds.find(".parrot") is Parrot
    assert asked == []


def test_a_decorator_registers_under_the_names_of_the_class(
    birds: Registry[type[Bird]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = install(monkeypatch)
    assert birds.register(Crow) is Crow
    assert birds.find("crow") is Crow
    assert asked == []
    birds.unregister("crow")
    assert birds.find("crow") is None


def test_a_plugin_may_replace_a_built_in(birds: Registry[type[Bird]]) -> None:
    class Loud(Bird):
        names = ("parrot",)

    birds.register(Loud)
    assert birds.find("parrot") is Loud
    birds.unregister("parrot")
    assert birds.find("parrot") is Parrot


def test_an_entry_point_is_loaded_for_an_unknown_name_and_once(
    birds: Registry[type[Bird]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = install(monkeypatch, crow=f"{__name__}:Crow")
    assert birds.find("crow") is Crow
    assert birds.find("dodo") is None
    assert asked == [GROUP]


def test_an_entry_point_may_name_a_module_that_registers_its_classes(
    birds: Registry[type[Bird]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "crows.py").write_text("from atp.base import registry\nregistry.birds.register(registry.Crow)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("atp.base.registry.birds", birds, raising=False)
    monkeypatch.setattr("atp.base.registry.Crow", Crow, raising=False)
    install(monkeypatch, crows="crows")
    assert birds.find("crow") is Crow
    assert birds.packages == {"crow": "crows"}


def test_a_plugin_that_can_not_be_loaded(birds: Registry[type[Bird]], monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, crow=f"{__name__}:Crow", dodo=f"{__name__}:Dodo")
    assert birds.find("crow") is Crow
    with pytest.raises(PluginError, match=r"the plugin `dodo` .* can't be loaded: AttributeError: .*Dodo") as caught:
        birds.find("dodo")
    assert caught.value.hint
    assert [broken.name for broken in birds.broken] == ["dodo"]


def test_names_in_a_message(birds: Registry[type[Bird]]) -> None:
    birds.register(Crow)
    assert birds.names == ["parrot", ".parrot", "gone", "crow"]
    assert str(birds) == "`.parrot`, `crow`, `gone`, `parrot`"
