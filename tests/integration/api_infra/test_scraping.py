"""The Prometheus endpoint: off unless asked for, apart from gRPC, and right about what was done."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from contextengine import types as t
from contextengine.errors import InvalidField
from contextengine_server.api.pipeline.auth import ConfigurationError
from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.health import gauges
from contextengine_server.summarize import GuardState
from contextengine_server.summarize.guards.breaker import Breaker
from contextengine_server.summarize.guards.spend import Spend
from scripts.version import current
from tests import postgres
from tests.integration.harness import ALICE, TOKENS, House, budget, house, ref

ADDRESS = "telemetry.metrics.prometheus.address"
ON = {ADDRESS: "127.0.0.1:0"}
RPC = "contextengine.v1.ContextEngine/"


class Scrape:
    """What one scrape answered, parsed as Prometheus does."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {}
        for family in text_string_to_metric_families(text):
            assert family.name not in self.families, family.name
            self.families[family.name] = family
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples with these labels; there must be one."""
        found = [
            s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()
        ]
        assert found, (name, labels)
        return sum(found)


async def scrape(house: House) -> Scrape:
    def read() -> str:
        with urllib.request.urlopen(f"http://{house.app.scraped}/metrics", timeout=60) as answer:
            assert answer.headers["content-type"].startswith("text/plain")
            text: str = answer.read().decode()
            return text

    return Scrape(await asyncio.to_thread(read))


def user(name: str, text: str = "hello") -> t.Message:
    return t.Message(id=name, role=t.Role.ROLE_USER, parts=[t.Part(text=t.TextPart(text=text))])


async def test_nothing_listens_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with house(tmp_path) as running:
        assert running.app.scraped == ""
    assert load_settings(None, {}, {}).telemetry.metrics.prometheus.address == ""


async def test_what_was_done_is_what_is_scraped(tmp_path: Path) -> None:
    async with house(tmp_path, **ON) as running:
        stub = running.stub
        for number in range(3):
            await stub.Ingest(t.IngestRequest(session=ref("s"), message=user(f"m{number}")))
        request = t.AssembleRequest(session=ref("s"), budget=budget(1_000))
        first = await stub.Assemble(request)
        request.known_context_hash = first.context_hash
        again = await stub.Assemble(request)
        assert again.cache.reused_count == 3
        with pytest.raises(InvalidField):
            await running.client.assemble(ref("s"), budget=budget(-1))
        usage = t.Usage(
            input_tokens=30, output_tokens=7, cache_read_tokens=60, cache_write_tokens=10
        )
        report = t.ReportUsageRequest(session=ref("s"), usage=usage, request_id="r1")
        await stub.ReportUsage(report)
        await stub.ReportUsage(report)  # the same once more: billed once
        seen = await scrape(running)

    count = "rpc_server_call_duration_seconds_count"
    assert seen.value(count, rpc_method=f"{RPC}Ingest", rpc_response_status_code="OK") == 3
    assert seen.value(count, rpc_method=f"{RPC}Assemble", rpc_response_status_code="OK") == 2
    assert seen.value(count, rpc_method=f"{RPC}Assemble") == 3
    assert seen.value(count, rpc_method=f"{RPC}Compact", rpc_response_status_code="OK") == 0
    buckets = "rpc_server_call_duration_seconds_bucket"
    assert seen.value(buckets, rpc_method=f"{RPC}Ingest", le="+Inf") == 3
    assert seen.value("rpc_server_call_duration_seconds_sum", rpc_method=f"{RPC}Ingest") > 0
    assert seen.value("contextengine_rpc_received_bytes_total", rpc_method=f"{RPC}Ingest") > 0
    assert seen.value("contextengine_messages_stored_total") == 3
    tokens = int(first.estimated_tokens)
    assert seen.value("contextengine_tokens_stored_total") == tokens
    assert seen.value("contextengine_tokens_assembled_total") == 2 * tokens
    assert seen.value("contextengine_tokens_reused_total") == tokens
    assert seen.value("contextengine_tokens_reported_total", kind="input_uncached") == 30
    assert seen.value("contextengine_tokens_reported_total", kind="input_cache_read") == 60
    assert seen.value("contextengine_tokens_reported_total", kind="input_cache_write") == 10
    assert seen.value("contextengine_tokens_reported_total", kind="output") == 7
    assert seen.value("contextengine_assemblies_total", outcome="fits") == 2
    assert seen.value("contextengine_sessions_warm") == 1
    assert seen.value("contextengine_sessions_warm_size_bytes") > 0
    assert seen.value("contextengine_rpc_in_flight") == 0
    assert seen.value("contextengine_store_up") == 1
    # How much room a database elsewhere has left, it does not say.
    assert seen.value("contextengine_store_free_bytes") > 0 or postgres.INSISTS
    assert seen.value("contextengine_build_info", version=current()) == 1
    assert seen.value("process_resident_memory_bytes") > 0
    assert seen.families["rpc_server_call_duration_seconds"].type == "histogram"
    assert seen.families["contextengine_messages_stored"].type == "counter"


async def test_a_compaction_and_what_waits_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauges, "INTERVAL_S", 0.1)
    async with house(tmp_path, **ON) as running:
        store = running.app.store
        for number in range(30):
            message = user(f"m{number}", f"the order {number} is late " * 40)
            await running.stub.Ingest(t.IngestRequest(session=ref("s"), message=message))
        done = await running.client.compact(ref("s"), force=True, budget=budget(20_000))
        assert done.summaries
        now = store.clock_ms()
        open_guard = GuardState(Breaker(failures=5, opened_ms=now), Spend(((now, 250_000),)))
        await store.guards.change("alice", lambda before: (open_guard.encode().encode(), None))
        await store.guards.change("bob", lambda before: (GuardState().encode().encode(), None))
        async with asyncio.timeout(60):
            while (seen := await scrape(running)).value(
                "contextengine_summarizer_breakers", state="closed"
            ) < 1:
                await asyncio.sleep(0.2)
    assert seen.value("contextengine_compactions_total", outcome="committed") == len(done.summaries)
    assert seen.value("contextengine_compactions_total", outcome="failed") == 0
    assert seen.value("contextengine_background_jobs") == 0
    assert seen.value("contextengine_summarizer_spent", window="hour") == 250_000
    assert seen.value("contextengine_summarizer_spend_ratio") == 0.5


async def test_no_label_names_a_tenant_an_agent_or_a_session(tmp_path: Path) -> None:
    async with house(tmp_path, token=ALICE, **{"auth.tokens": TOKENS}, **ON) as running:
        await running.client.ingest(ref("a-session", agent="an-agent"), user("a-message"))
        seen = await scrape(running)
    values = {value for sample in seen.samples for value in sample.labels.values()}
    assert not values & {"alice", "bob", "an-agent", "a-session", "a-message"}
    assert {name for sample in seen.samples for name in sample.labels} <= {
        *("rpc_system_name", "rpc_method", "rpc_response_status_code", "le", "outcome", "reason",
        "state", "window", "kind", "task", "budget"),
        *("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model",
        "gen_ai_token_type", "error_type"),
        *("version", "generation", "implementation", "major", "minor", "patchlevel"),
    }  # fmt: skip


async def test_the_port_of_grpc_answers_no_scrape(tmp_path: Path) -> None:
    async with house(tmp_path, **ON) as running:
        assert running.app.scraped.rpartition(":")[2] != running.app.address.rpartition(":")[2]
        host, port = running.app.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answered = b""
        with suppress(ConnectionResetError):  # no answer at all
            async with asyncio.timeout(30):
                answered = await reader.read()
        writer.close()
    assert b"contextengine_" not in answered


async def test_the_endpoint_ends_with_the_server(tmp_path: Path) -> None:
    async with house(tmp_path, **ON) as running:
        where = running.app.scraped.split(":")
    with (
        pytest.raises(OSError, match="refused"),
        socket.create_connection((where[0], int(where[1])), 5),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("9464", "must be host:port or [ipv6]:port"),
        ("127.0.0.1:99999", "the port from 0 to 65535"),
        ("unix:/tmp/metrics", "must be host:port or [ipv6]:port"),
        ("0.0.0.0:9464", "address 0.0.0.0:9464 can be reached from other machines"),
        ("[::]:9464", "set insecure: true"),
    ],
)
def test_a_bad_address_is_refused_as_a_setting(address: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(None, {ADDRESS: address}, {})
    assert "telemetry.metrics.prometheus" in str(refused.value)
    assert said in str(refused.value)
    allowed = {ADDRESS: "0.0.0.0:9464", "telemetry.metrics.prometheus.insecure": True}
    assert load_settings(None, allowed, {}).telemetry.metrics.prometheus.address == "0.0.0.0:9464"


async def test_a_port_in_use_keeps_the_server_from_starting(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ConfigurationError) as refused:
            async with house(tmp_path, **{ADDRESS: taken}):
                pass
    assert str(refused.value).startswith(f"{ADDRESS}: cannot listen on {taken}: the port is in use")


async def test_the_port_of_grpc_is_refused(tmp_path: Path) -> None:
    both = {"server.address": "127.0.0.1:9464", ADDRESS: "127.0.0.1:9464"}
    with pytest.raises(ConfigurationError, match=r"has the port of server\.address"):
        async with house(tmp_path, **both):
            pass
