"""Wire to projection: what a request asks of a form, checked and read into a task."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from contextengine_proto.v1 import projection_pb2 as pb
from contextengine_server.api.messages import request_id
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.projection.target import Target
from contextengine_server.projection.targets import Targets
from contextengine_server.projection.task import Payload, Task
from contextengine_server.projection.thread import Binding, Mode, ThreadEvent

MODES = {
    pb.PROJECTION_MODE_UNSPECIFIED: None,
    pb.PROJECTION_MODE_PER_TURN: Mode.PER_TURN,
    pb.PROJECTION_MODE_THREAD_BOOTSTRAP: Mode.THREAD_BOOTSTRAP,
}
PAYLOADS = {
    pb.PAYLOAD_MODE_UNSPECIFIED: None,
    pb.PAYLOAD_MODE_PRESERVE: Payload.PRESERVE,
    pb.PAYLOAD_MODE_SHAPE: Payload.SHAPE,
    pb.PAYLOAD_MODE_ELIDE: Payload.ELIDE,
}
_EVENTS = {int(event.value): event for event in ThreadEvent}

OF_THREADS = (
    "mode",
    "payload_mode",
    "binding",
    "host_events",
    "max_chars",
    "token_budget",
    "reserve_tokens",
    "dynamic_tools_fingerprint",
    "product_name",
)
"""Options that mean nothing to a form whose harness keeps no native thread."""

MAX_NAME_BYTES = 256
MAX_STATE_BYTES = 65_536
MAX_TEXT_BYTES = 1 << 20
MAX_EVENTS = 1_000
MAX_COUNT = 2**53


def target_of(targets: Targets, options: pb.ProjectionOptions, field: str) -> Target:
    """The target that is asked for by its value, its name, or both. Raises InvalidField or
    ContradictoryFields, naming it under `field`."""
    numbered = targets.numbered(options.target)
    if options.target_name:
        named = targets.named(options.target_name)
        if named is None:
            raise InvalidField(
                f"{field}.target_name",
                f"is not a target of this service: it has {', '.join(targets.names)}",
            )
        if options.target and named is not numbered:
            raise ContradictoryFields(
                [f"{field}.target", f"{field}.target_name"], "say different forms: give one of them"
            )
        return named
    if numbered is None:
        values = ", ".join(pb.ProjectionTarget.keys()[1:])
        raise InvalidField(f"{field}.target", f"is required: one of {values}, or a target_name")
    return numbered


def check_options(targets: Targets, options: pb.ProjectionOptions, field: str) -> None:
    """Raises InvalidField for what cannot be, naming it under `field`."""
    target = target_of(targets, options, field)
    names = target.renderer_names
    if options.renderer and options.renderer not in names:
        raise InvalidField(
            f"{field}.renderer", f"must be {' or '.join(names)} for this target, or empty"
        )
    if not target.threads:
        _refuse_thread_options(targets, target, options, field)
    if options.mode not in MODES:
        raise InvalidField(
            f"{field}.mode", "is unknown: give per turn, thread bootstrap, or nothing"
        )
    if options.payload_mode not in PAYLOADS:
        raise InvalidField(
            f"{field}.payload_mode", "is unknown: give preserve, shape, elide, or nothing"
        )
    for name in ("product_name", "dynamic_tools_fingerprint", "model", "provider"):
        _short(getattr(options, name), f"{field}.{name}", MAX_NAME_BYTES)
    _short(options.base_instructions, f"{field}.base_instructions", MAX_TEXT_BYTES)
    for name in ("max_chars", "token_budget", "reserve_tokens", "max_cache_breakpoints"):
        if options.HasField(name):
            _count(getattr(options, name), f"{field}.{name}")
    if options.HasField("max_chars") and options.max_chars == 0:
        raise InvalidField(f"{field}.max_chars", "is 0, which leaves no context: give at least 1")
    if len(options.host_events) > MAX_EVENTS:
        raise InvalidField(f"{field}.host_events", f"has more than {MAX_EVENTS}: send the newest")
    for index, event in enumerate(options.host_events):
        if event.kind not in _EVENTS:
            raise InvalidField(
                f"{field}.host_events[{index}].kind", "is required: say what happened"
            )
        _short(event.detail, f"{field}.host_events[{index}].detail", MAX_STATE_BYTES)


def _refuse_thread_options(
    targets: Targets, target: Target, options: pb.ProjectionOptions, field: str
) -> None:
    given = {descriptor.name for descriptor, _ in options.ListFields()}
    for name in OF_THREADS:
        if name in given:
            threaded = " and ".join(one.name for one in targets if one.threads)
            raise InvalidField(
                f"{field}.{name}",
                f"is for the target {threaded} alone: leave it out for {target.name}",
            )


def asked(task: Task, options: pb.ProjectionOptions, field: str) -> Task:
    """A task of a context, with what the options ask for, which were checked. Raises InvalidField
    for a binding whose state is none of ours."""
    own_budget = options.HasField("token_budget")
    reserve = options.reserve_tokens if options.HasField("reserve_tokens") else None
    return replace(
        task,
        base=options.base_instructions,
        renderer=options.renderer,
        mode=MODES[options.mode],
        payload=PAYLOADS[options.payload_mode],
        budget=options.token_budget if own_budget else task.budget,
        # The context's own reserve belongs to the context's own budget.
        reserve=task.reserve if reserve is None and not own_budget else reserve,
        max_chars=options.max_chars if options.HasField("max_chars") else None,
        breakpoints=(
            options.max_cache_breakpoints
            if options.HasField("max_cache_breakpoints")
            else task.breakpoints
        ),
        product=options.product_name or task.product,
        tools=options.dynamic_tools_fingerprint,
        provider=options.provider or task.provider,
        model=options.model or task.model,
        binding=_bound(binding_of(options, field), options.binding.last_message_id, task, field),
        events=tuple(_EVENTS[event.kind] for event in options.host_events),
        inject=options.inject_items,
    )


def binding_of(options: pb.ProjectionOptions, field: str) -> Binding | None:
    """What the harness kept with its thread. Raises InvalidField for a state that is none of
    ours."""
    if not options.HasField("binding"):
        return None
    given = options.binding
    field = f"{field}.binding"
    for name in ("thread_id", "engine_id", "epoch", "fingerprint", "dynamic_tools_fingerprint"):
        _short(
            getattr(given, name), f"{field}.{name}", MAX_STATE_BYTES if name == "epoch" else 4_096
        )
    _short(given.policy_fingerprint, f"{field}.policy_fingerprint", MAX_STATE_BYTES)
    for name in ("last_sequence", "first_sequence"):
        _count(getattr(given, name), f"{field}.{name}")
    state = _state(given.state, f"{field}.state")
    return Binding(
        thread_id=given.thread_id,
        engine_id=given.engine_id,
        policy=given.policy_fingerprint,
        epoch=given.epoch,
        fingerprint=given.fingerprint,
        tools=given.dynamic_tools_fingerprint,
        last_sequence=given.last_sequence,
        first_sequence=given.first_sequence,
        schema=given.schema_version,
        mode=Mode(state.get("mode", "thread_bootstrap" if given.epoch else "per_turn")),
        developer=str(state.get("developer", "")),
        cut=state.get("cut", {}),
    )


def bound_id(options: pb.ProjectionOptions, field: str) -> str:
    """The host id of the last message that the bound thread has seen; empty: none is named."""
    return request_id(options.binding.last_message_id, f"{field}.binding.last_message_id")


def _bound(binding: Binding | None, id: str, task: Task, field: str) -> Binding | None:
    """The binding, of a thread that has seen the message with this id as well. Raises InvalidField
    where a list has none such, or several."""
    if binding is None or not id:
        return binding
    places = [item.sequence for item in task.items if item.id == id and item.sequence]
    if task.bound is None and len(places) != 1:
        what = f"{len(places)} messages have" if places else "no message has"
        raise InvalidField(
            f"{field}.binding.last_message_id",
            f"{what} the id {id!r}: give `last_sequence`, the message's place in the list",
        )
    newest = max([binding.last_sequence, task.bound or 0, *places])
    return replace(binding, last_sequence=newest)


def state_of(binding: Binding) -> bytes:
    """What the binding's open fields do not say."""
    state = {"mode": binding.mode.value, "developer": binding.developer, "cut": dict(binding.cut)}
    return json.dumps(state, separators=(",", ":"), sort_keys=True).encode()


def field_named(name: str, options: pb.ProjectionOptions, field: str) -> str:
    """What a request calls the field that a projection complains of; `field` is where the options
    stand in it."""
    if name == "budget":
        return f"{field}.token_budget" if options.HasField("token_budget") else name
    own = {
        "base": "base_instructions",
        "options.base_instructions": "base_instructions",
        "max_chars": "max_chars",
    }
    return f"{field}.{own[name]}" if name in own else name


def _state(raw: bytes, field: str) -> dict[str, Any]:
    if not raw:
        return {}
    try:
        state: Any = json.loads(raw) if len(raw) <= MAX_STATE_BYTES else {}
        Mode(state["mode"])
        cuts = state["cut"].items()
        if isinstance(state["developer"], str) and all(
            isinstance(at, int) and at >= 0 for _, at in cuts
        ):
            return dict(state)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise InvalidField(
        field, "is not what a projection answered: give it back as it was, or no binding"
    )


def _short(text: str, field: str, limit: int) -> None:
    if len(text.encode()) > limit:
        raise InvalidField(field, f"is longer than {limit} bytes: shorten it")


def _count(value: int, field: str) -> None:
    if not 0 <= value <= MAX_COUNT:
        raise InvalidField(field, f"is {value}: give 0 to {MAX_COUNT}")
