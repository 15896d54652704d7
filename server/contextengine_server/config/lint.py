"""Checks across settings, for doctor and before the server starts: what no single value can
tell."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from contextengine_server.config.settings import BudgetSettings, Settings
from contextengine_server.context.budget import ImpossibleBudget, window_budget
from contextengine_server.engines.registration import Surroundings
from contextengine_server.plugins.stores import kind_of

WINDOWS = (8_000, 16_000, 32_000, 64_000, 128_000, 200_000, 400_000, 1_000_000)
"""Context windows of models in use, for which the budget is worked out."""

_SMALL = 16_000
"""Below this window the default reserves may give way; from it on they should not have to."""

LEAST_LEFT = 4
"""Reserves should leave at least this part (a quarter) of the default window."""


class SettingCheck(msgspec.Struct, frozen=True):
    """One check: how it is, and what to do."""

    name: str
    """What was checked: the path of a setting or of a group."""
    status: Literal["ok", "warning", "error"]
    """An error keeps the server from starting or from being of use."""
    found: str
    advice: str = ""


def config_lint(settings: Settings) -> list[SettingCheck]:
    """Every check, in the order of the settings."""
    return [
        *_trust(settings),
        *_tls(settings),
        *_store(settings),
        *_sizes(settings),
        *_windows(settings.budget),
        *_engines(settings),
        *_summarizers(settings),
    ]


def available(budget: BudgetSettings, window: int) -> int:
    """What a window without system prompt and tools leaves for messages; 0 where the settings leave
    nothing."""
    if budget.window_cap is not None:
        window = min(window, budget.window_cap)
    try:
        return window_budget(window, source="settings", rules=budget.rules).available
    except ImpossibleBudget:
        return 0


def _reserves(budget: BudgetSettings, window: int) -> int:
    """What output reserve, safety margin and rot buffer come to in a window, before any of them
    gives way."""
    if budget.window_cap is not None:
        window = min(window, budget.window_cap)
    margin = max(budget.safety_margin_ratio * window, budget.safety_margin_min)
    return math.ceil(budget.output_reserve + margin + budget.rot_buffer_ratio * window)


def _trust(settings: Settings) -> Iterator[SettingCheck]:
    server, auth = settings.server, settings.auth
    if server.is_loopback:
        callers = auth.told or "no credentials: every caller is tenant `default`"
        yield SettingCheck(
            "server.address", "ok", f"{server.address} is this machine alone; {callers}"
        )
    elif server.tls.enabled and auth.enabled:
        yield SettingCheck("server.address", "ok", f"{server.address} with TLS and {auth.told}")
    else:
        missing = [
            *([] if server.tls.enabled else ["server.tls.cert_file and server.tls.key_file"]),
            *([] if auth.enabled else ["auth.tokens"]),
        ]
        what = f"{server.address} is open to the network without {' and '.join(missing)}"
        if server.insecure:
            yield SettingCheck(
                "server.address",
                "warning",
                f"{what}, as server.insecure allows",
                f"Set {' and '.join(missing)}.",
            )
        else:
            advice = (
                f"Set {' and '.join(missing)}, or listen on 127.0.0.1, or say --insecure where a"
                " proxy checks callers."
            )
            yield SettingCheck("server.address", "error", what, advice)
    if auth.certificates and not server.tls.client_ca_file:
        yield SettingCheck(
            "server.tls.client_ca_file",
            "error",
            "auth.certificates has rules, and no client is asked for a certificate",
            "Set it to the authorities that sign the clients' certificates.",
        )
    roles = [*(one.role for one in auth.tokens), *(one.role for one in auth.certificates)]
    if auth.enabled and "operator" not in roles and not any(one.operator_roles for one in auth.jwt):
        yield SettingCheck(
            "auth.tokens",
            "warning",
            "no token has the role operator, so nobody can assign an engine",
            "Add a token with role: operator.",
        )


def _tls(settings: Settings) -> Iterator[SettingCheck]:
    tls = settings.server.tls
    if not tls.enabled:
        return
    unreadable = []
    for name in ("cert_file", "key_file", "client_ca_file"):
        path = getattr(tls, name)
        if path and not os.access(path, os.R_OK):
            unreadable.append(name)
            yield SettingCheck(
                f"server.tls.{name}",
                "error",
                f"{path} cannot be read",
                "Correct the path or the file's permissions.",
            )
    if not unreadable:
        yield SettingCheck(
            "server.tls",
            "ok",
            "the files are there" + (", clients are checked" if tls.client_ca_file else ""),
        )


def _store(settings: Settings) -> Iterator[SettingCheck]:
    if not kind_of(settings.store.url).durable:
        yield SettingCheck(
            "store.url",
            "warning",
            f"{settings.store.url} keeps nothing: what is acknowledged is lost with the server",
            "Name a file or a database where what is stored must last.",
        )
    if settings.store.durability != "full":
        yield SettingCheck(
            "store.durability",
            "warning",
            "a power cut or a crash of the system may take back what was acknowledged last",
            "Leave it full where that must not be.",
        )


def _sizes(settings: Settings) -> Iterator[SettingCheck]:
    wire, message = settings.server.max_message_bytes, settings.sessions.max_message_bytes
    if message > wire:
        yield SettingCheck(
            "sessions.max_message_bytes",
            "warning",
            f"a message of {message:,} bytes may be stored, and none above {wire:,} bytes can"
            " arrive",
            "Raise server.max_message_bytes or lower sessions.max_message_bytes.",
        )
    if settings.sessions.cache_bytes < wire:
        yield SettingCheck(
            "sessions.cache_bytes",
            "warning",
            f"{settings.sessions.cache_bytes:,} bytes hold no session as large as one request of"
            f" {wire:,} bytes",
            "Raise sessions.cache_bytes above server.max_message_bytes.",
        )


def _windows(budget: BudgetSettings) -> Iterator[SettingCheck]:
    default = min(budget.default_window, budget.window_cap or budget.default_window)
    left = ", ".join(f"{window // 1000:,}k: {available(budget, window):,}" for window in WINDOWS)
    found = f"left for messages, by window: {left}"
    giving_way = [
        window
        for window in WINDOWS
        if _reserves(budget, window) >= min(window, budget.window_cap or window)
    ]
    if _reserves(budget, default) >= default:
        yield SettingCheck(
            "budget",
            "error",
            f"the reserves come to {_reserves(budget, default):,} of the default window of"
            f" {default:,} tokens",
            "Lower output_reserve, the margin or the rot buffer, or raise default_window or"
            " window_cap.",
        )
    elif default - _reserves(budget, default) < default // LEAST_LEFT:
        yield SettingCheck(
            "budget",
            "warning",
            f"the reserves come to {_reserves(budget, default):,} of the default window of"
            f" {default:,} tokens, which is more than three quarters, and give way; {found}",
            "Lower output_reserve, the margin or the rot buffer, or raise default_window or"
            " window_cap.",
        )
    elif giving_way and giving_way[-1] >= _SMALL:
        yield SettingCheck(
            "budget",
            "warning",
            f"the reserves come to all of a window of {giving_way[-1]:,} tokens and have to give"
            f" way; {found}",
            "Lower output_reserve, the margin or the rot buffer.",
        )
    else:
        yield SettingCheck("budget", "ok", found)


def _engines(settings: Settings) -> Iterator[SettingCheck]:
    """What engines say of their own options."""
    beside = Surroundings(
        available(settings.budget, settings.budget.default_window),
        {
            f"summarizer.endpoints[{index}].window": endpoint.window
            for index, endpoint in enumerate(settings.summarizer.endpoints)
        },
    )
    for registration in settings.engine.catalogue().registrations:
        if registration.findings is None:
            continue
        options = settings.engine.options(registration.id)
        try:
            found = [
                SettingCheck(
                    said.setting, "warning" if said.advice else "ok", said.found, said.advice
                )
                for said in registration.findings(options, beside)
            ]
        except Exception as error:  # a plugin's: the other checks are not concerned
            yield SettingCheck(
                f"engine.{registration.id}",
                "warning",
                f"the checks of its options failed: {type(error).__name__}",
                f"Tell who made it ({registration.owner}).",
            )
        else:
            yield from found


def _summarizers(settings: Settings) -> Iterator[SettingCheck]:
    endpoints, order = settings.summarizer.endpoints, settings.summarizer.order
    names = {endpoint.name for endpoint in endpoints} if "endpoints" in order else set()
    names |= {"runtime"} & set(order)
    if endpoints and "endpoints" not in order:
        yield SettingCheck(
            "summarizer.order",
            "warning",
            f"is {', '.join(order)}, so that none of the {len(endpoints)} configured endpoints is"
            " asked",
            "Add endpoints to it, or remove summarizer.endpoints.",
        )
    for option, reference in settings.summarizer.models_named():
        name = reference.partition(":")[0]
        if name not in names:
            yield SettingCheck(
                option,
                "warning",
                f"names {name!r}, which is not an endpoint that is asked; it is left out",
                "Add it to summarizer.endpoints, or name one of:"
                f" {', '.join(sorted(names)) or '(none)'}.",
            )
    for index, endpoint in enumerate(endpoints):
        where = f"summarizer.endpoints[{index}]"
        if endpoint.api_key_env and not os.environ.get(endpoint.api_key_env):
            yield SettingCheck(
                f"{where}.api_key_env",
                "warning",
                f"the environment has no such variable; endpoint {endpoint.name!r} is left out",
                "Set the variable for the server, or leave api_key_env empty for a service without"
                " keys.",
            )
        if (
            endpoint.api_key_env
            and endpoint.base_url.startswith("http://")
            and not _is_near(endpoint.base_url)
        ):
            yield SettingCheck(
                f"{where}.base_url",
                "warning",
                f"endpoint {endpoint.name!r} is sent its key and the conversations unencrypted",
                "Use https://.",
            )


def _is_near(url: str) -> bool:
    """True for an address on this machine."""
    return bool(re.match(r"http://(localhost|127\.[\d.]+|\[::1\])([:/]|$)", url))
