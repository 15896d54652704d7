"""What model calls cost: a catalogue of rates, and what a bill comes to by it.

Comis keeps such a catalogue and shows `savedVsUncached`: what the cached tokens of a call would
have cost as plain input, less what they did cost. A provider that asks more for writing a cache
than for plain input makes it negative on a first turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from contextengine_server.tokens import plain_name, profile

_VERSION = re.compile(r"(-(\d{8}|\d{4}-\d\d-\d\d|latest|preview(-\d\d-\d\d)?|v\d+(:\d+)?))*")
"""What may follow a model's name and leave it the same model."""


Price = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class UnusableRates(ValueError):
    """A catalogue cannot be read; the text says why."""


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prices of a model. US dollars a million tokens, which is millionths of one a token;
    those of the cache are shares of the input price."""

    input: Price
    output: Price
    cache_read: Price
    cache_write: Price
    """Written for the provider's shortest time."""
    cache_write_1h: Price

    def priced(self, bill: CallTokens) -> Priced:
        """What a bill comes to."""
        long = min(bill.cache_write_1h, bill.cache_write)
        short = bill.cache_write - long
        cached = (
            bill.cache_read * self.cache_read
            + short * self.cache_write
            + long * self.cache_write_1h
        ) * self.input
        plain = (bill.cache_read + bill.cache_write) * self.input
        cost = bill.input * self.input + cached + bill.output * self.output
        return Priced(bill.cost_micro_usd or round(cost), round(plain - cached), known=True)


class CallTokens(msgspec.Struct, frozen=True):
    """What a provider billed for a call, in the model's tokens. No token stands in two of the three
    parts of the input."""

    input: int = 0
    """Neither read from a cache nor written to one."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    """Of `cache_write`, those written for an hour."""
    cost_micro_usd: int = 0
    """What the caller says that it cost, in millionths of a US dollar; 0: it does not say."""


class Priced(msgspec.Struct, frozen=True):
    """What a call cost, in millionths of a US dollar."""

    cost_micro_usd: int
    saved_micro_usd: int
    """What the prompt cache saved against plain input; negative where writing it cost more than
    reading it has saved."""
    known: bool
    """False where the catalogue has no price of the model; nothing is known of savings then."""


class RateCatalogue(msgspec.Struct, frozen=True):
    """The rates of models, by provider and the model's plain name."""

    providers: Mapping[str, Mapping[str, Rates]]

    def rates_of(self, provider: str, model: str) -> Rates | None:
        """The rates of a model; None where the catalogue has none. A provider that is not in the
        catalogue is a gateway: the model's own is taken. Vendor prefixes, dates and versions of the
        name do not matter."""
        models = self.providers.get(provider) or self.providers.get(profile(model).provider)
        name = plain_name(model)
        known = [
            prefix
            for prefix in models or ()
            if name.startswith(prefix) and _VERSION.fullmatch(name, len(prefix))
        ]
        return models[max(known, key=len)] if models and known else None

    def priced(self, provider: str, model: str, bill: CallTokens) -> Priced:
        """What a bill comes to. Of a model without a price: what the caller says that it cost."""
        rates = self.rates_of(provider, model)
        if rates is None:
            return Priced(bill.cost_micro_usd, 0, known=False)
        return rates.priced(bill)


def read_rates(text: str) -> RateCatalogue:
    """A catalogue in the form of rates.yaml. Raises UnusableRates."""
    try:
        return RateCatalogue(
            {
                provider: {
                    plain_name(model): _rates(provider, model, {**group["rates"], **prices})
                    for model, prices in group["models"].items()
                }
                for provider, group in yaml.safe_load(text).items()
            }
        )
    except UnusableRates:
        raise
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise UnusableRates(
            "is not a catalogue of rates: each provider needs `rates` and `models`, as"
            f" usage/rates.yaml has them ({type(error).__name__}: {error})"
        ) from error


def rates_file(path: str) -> RateCatalogue:
    """The catalogue of a file; empty: ours. Raises UnusableRates."""
    if not path:
        return our_rates()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UnusableRates(f"cannot be read: {error}") from error
    return read_rates(text)


@cache
def our_rates() -> RateCatalogue:
    """The catalogue that is shipped."""
    text = resources.files(__package__).joinpath("rates.yaml").read_text(encoding="utf-8")
    return read_rates(text)


def _rates(provider: str, model: str, prices: dict[str, Any]) -> Rates:
    try:
        return msgspec.convert({"cache_write_1h": prices.get("cache_write"), **prices}, Rates)
    except msgspec.ValidationError as error:
        raise UnusableRates(f"{provider}, {model}: {error}") from error
