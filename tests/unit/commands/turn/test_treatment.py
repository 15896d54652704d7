"""Which sessions are ignored or stateless."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.commands.turn.treatment import FindTreatment, TreatmentRules
from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import SessionFacts, SessionPattern
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.treatment import Treatment
from tests.unit.commands.house import TENANT, Rows, Server

NAMES = st.text("ab:", min_size=1, max_size=4)
GLOBS = st.text("ab:*", max_size=4)
PATTERNS = st.lists(
    st.builds(SessionPattern, agent=GLOBS, session=GLOBS, key=GLOBS).filter(lambda p: not p.empty),
    max_size=2,
)


async def treated(server: Server, rules: TreatmentRules, ref: Ref) -> Treatment:
    return await FindTreatment(server.store, server.core.selection, rules).run(TENANT, ref)


async def test_a_session_is_known_by_all_its_names(server: Server) -> None:
    await server.ingest("hello", ref=Ref("agent", "s9", "cron:x"))
    by_key = TreatmentRules(ignored=[SessionPattern(key="cron:*")])
    by_id = TreatmentRules(stateless=[SessionPattern(session="s9")])
    for ref in (Ref("agent", "s9"), Ref("agent", key="cron:x"), Ref("agent", "s9", "cron:x")):
        assert await treated(server, by_key, ref) is Treatment.IGNORED
        assert await treated(server, by_id, ref) is Treatment.STATELESS
    assert await treated(server, by_key, Ref("agent", key="cron:new")) is Treatment.IGNORED
    assert await treated(server, by_id, Ref("agent", key="s9")) is Treatment.STATELESS
    for ref in (Ref("agent", "s1"), Ref("agent", key="main"), Ref("agent", "cron:x")):
        assert await treated(server, by_key, ref) is Treatment.KEPT


@given(PATTERNS, PATTERNS, NAMES, NAMES, NAMES)
def test_ignoring_wins(
    ignored: list[SessionPattern],
    stateless: list[SessionPattern],
    agent: str,
    session: str,
    key: str,
) -> None:
    async def ask() -> Treatment:
        rules = TreatmentRules(ignored, stateless)
        return await treated(Server(Rows()), rules, Ref(agent, session, key))

    facts = SessionFacts(agent, session, key)
    expected = Treatment.KEPT
    if any(pattern.matches(facts) for pattern in stateless):
        expected = Treatment.STATELESS
    if any(pattern.matches(facts) for pattern in ignored):
        expected = Treatment.IGNORED
    assert asyncio.run(ask()) is expected


async def test_what_is_sent_is_assembled_by_the_engine_of_its_session(server: Server) -> None:
    """Also of a session that is named by its key alone, or is not there yet."""
    await server.ingest("hello", ref=Ref("agent", "s9", "cron:x"))
    await server.engines.assign.run(Scope(TENANT, "agent", "s9"), "legacy", {}, clear=False)
    find = FindTreatment(server.store, server.core.selection, TreatmentRules())
    served = [
        (await find.engine(TENANT, ref)).id
        for ref in (Ref("agent", "s9"), Ref("agent", key="cron:x"), Ref("agent", key="new"))
    ]
    assert served == ["legacy", "legacy", "dag"]
    assert TreatmentRules().empty
    keyed = TreatmentRules(ignored=[SessionPattern(session="s"), SessionPattern(key="k")])
    named = TreatmentRules(stateless=[SessionPattern(session="s")])
    assert (keyed.empty, keyed.ask_keys) == (False, True)
    assert (named.empty, named.ask_keys) == (False, False)
