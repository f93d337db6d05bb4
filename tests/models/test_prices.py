"""What answers cost."""

import pytest

from atp.models.connectors.connector import Connector, Prices
from atp.models.prices import cost_usd
from atp.suite.result import Usage

OPENAI = "https://api.openai.com/v1"
USED = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=400, cache_creation_tokens=100)


def connector(model: str = "gpt-4o", prices: Prices | None = None) -> Connector:
    return Connector(id="x", type="openai", model=model, prices=prices)


@pytest.mark.parametrize(
    ("prices", "dollars"),
    [
        (Prices(input=1, output=10), 0.002),
        (Prices(input=1, output=10, cache_read=0), 0.0016),
        (Prices(input=1, output=10, cache_write=2), 0.0021),
        (Prices(input=0, output=0), 0),
    ],
)
def test_costs_by_the_connectors_prices(prices: Prices, dollars: float) -> None:
    assert cost_usd(connector(prices=prices), USED, "m", "http://127.0.0.1") == pytest.approx(dollars)


def test_costs_by_the_price_list() -> None:
    read, cached = Usage(input_tokens=1000, output_tokens=0), Usage(input_tokens=1000, output_tokens=0)
    cached.cache_read_tokens = 1000
    full, less = (cost_usd(connector(), used, "gpt-4o-2024-08-06", OPENAI) for used in (read, cached))
    assert full is not None
    assert less is not None
    assert 0 < less < full < 0.1
    assert cost_usd(connector("openai:gpt-4o"), read, "unheard-of", None) == pytest.approx(full)


@pytest.mark.parametrize(
    ("model", "host", "used"),
    [
        ("unheard-of", OPENAI, USED),
        ("gpt-4o", "http://127.0.0.1:8000/v1", USED),
        ("gpt-4o", OPENAI, Usage(input_tokens=5)),
        ("gpt-4o", OPENAI, Usage()),
    ],
)
def test_what_is_not_known_is_not_zero(model: str, host: str, used: Usage) -> None:
    assert cost_usd(connector(model), used, model, host) is None
