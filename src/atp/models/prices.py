"""What an answer cost: by the connector's own prices, else by the list of `genai-prices`, else unknown."""

from importlib.util import find_spec

from atp.models.connectors.connector import Connector, Prices
from atp.suite.result import Usage

MILLION = 1_000_000


def cost_usd(connector: Connector, usage: Usage, model: str, host: str | None) -> float | None:
    """The cost in US dollars; none if the price is unknown."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    if connector.prices is not None:
        return _by_prices(connector.prices, usage.input_tokens, usage.output_tokens, usage)
    return _by_list(connector, usage, model, host)


def _by_prices(prices: Prices, read: int, written: int, usage: Usage) -> float:
    from_cache, to_cache = usage.cache_read_tokens or 0, usage.cache_creation_tokens or 0
    cost = max(read - from_cache - to_cache, 0) * prices.input + written * prices.output
    cost += from_cache * (prices.input if prices.cache_read is None else prices.cache_read)
    cost += to_cache * (prices.input if prices.cache_write is None else prices.cache_write)
    return cost / MILLION


def _by_list(connector: Connector, usage: Usage, model: str, host: str | None) -> float | None:
    if find_spec("genai_prices") is None:
        return None
    import genai_prices

    used = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_creation_tokens,
    )
    for name in dict.fromkeys((model, connector.model.rpartition(":")[2])):
        try:
            # The host decides a model's price, so a host that the list doesn't know has none.
            if host is not None:
                found = genai_prices.calc_price(used, name, provider_api_url=host)
            else:
                found = genai_prices.calc_price(used, name, provider_id=connector.model.partition(":")[0])
        except (LookupError, ValueError):
            continue
        return float(found.total_price)
    return None
