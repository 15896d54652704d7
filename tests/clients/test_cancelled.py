"""What a caller cancelled is not done behind its back."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine.calls import ASSEMBLE, ATTACH, EXPORT, GET_STATUS
from tests.clients.drivers import JAVA, NAMED, PATIENCE_S, ROOT
from tests.clients.node import ran
from tests.unit.client.conftest import Server
from tests.unit.client.test_transport import overloaded

NODE = """
import { Client, user } from "./dist/src/index.js";
const client = new Client(process.env.CONTEXTENGINE_ADDRESS);
const signal = AbortSignal.abort();
const codes = [];
for (let at = 0; at < 20; at++) {
  const session = client.session({ agentId: "cancelled", sessionId: `${at}` });
  const asked = { live: { messages: [user("said")], storeNew: true } };
  const streamed = async () => { for await (const _ of session.export({}, { signal })); };
  const calls = [
    session.assemble(asked, { signal }), session.ingest({ message: user("said") }, { signal }),
    streamed(),
    client.sessions.import([{ kind: { case: "header", value: {} } }], { signal }),
  ];
  for (const { reason } of await Promise.allSettled(calls)) codes.push(reason?.code ?? 0);
}
const { sessions } = await client.sessions.list({ agentId: "cancelled" });
console.log(JSON.stringify([[...new Set(codes)], sessions.length]));
client.close();
"""
CANCELLED = 1
BUSY_S = 20

AWAY = {
    "typescript": """
import { Client, user } from "./dist/src/index.js";
const client = new Client("127.0.0.1:1");
const session = client.session({ agentId: "a", sessionId: "s" });
const signal = AbortSignal.timeout(300);
const told = await session.assemble({ ingest: [user("said")] }, { signal }).catch((error) => error);
console.log(told.code ?? "answered", session.pending);
client.close();
""",
    "go": """
package main

import (
	"context"
	"fmt"
	"time"

	contextengine "github.com/contextengine/contextengine/clients/go"
	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/grpc/status"
)

func main() {
	client, _ := contextengine.New("127.0.0.1:1")
	session := client.Session(&pb.SessionRef{AgentId: "a", SessionId: "s"})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	said := []*pb.Message{contextengine.User("said")}
	_, err := session.Assemble(ctx, &pb.AssembleRequest{Ingest: said})
	fmt.Println(int(status.Code(err)), session.Pending())
}
""",
    "java": """
import dev.contextengine.client.*;
import dev.contextengine.v1.AssembleRequest;
import io.grpc.Context;

class Away {
    public static void main(String[] none) throws Exception {
        try (var client = ContextEngineClient.create("127.0.0.1:1")) {
            var session = client.session("a", "s");
            var said = AssembleRequest.newBuilder().addIngest(Messages.user("said")).build();
            var caller = Context.current().withCancellation();
            new Thread(() -> {
                try {
                    Thread.sleep(300);
                } finally {
                    caller.cancel(null);
                    return;
                }
            }).start();
            Object told = "answered";
            try {
                caller.call(() -> session.assemble(said));
            } catch (ContextEngineException error) {
                told = error.code().value();
            }
            System.out.println(told + " " + session.pending());
        }
    }
}
""",
}

CLOSING = {
    "typescript": (
        "const signal = AbortSignal.timeout(300);",
        "const signal = undefined; setTimeout(() => client.close(), 300);",
    ),
    "go": (", cancel)", ", func() { client.Close(); _ = cancel })"),
    "java": ("caller.cancel(null);", "client.close();"),
}
"""What ends the client in the place of the call."""

ASKING = """
import { Client } from "./dist/src/index.js";
const client = new Client(process.env.CONTEXTENGINE_ADDRESS, { breaker: true });
const session = { agentId: "a", sessionId: "s" };
const warnings = [];
process.on("warning", ({ message }) => warnings.push(message));
const asked = () => client.contextEngine.getStatus({ session }, { timeoutMs: 300 });
const asks = () => asked().catch(() => undefined);
await Promise.all(Array.from({ length: 12 }, asks));
await asks();
const closed = performance.now();
process.on("exit", () => console.log(JSON.stringify([performance.now() - closed, warnings])));
client.close();
"""

LENDING = """
import { Client } from "./dist/src/index.js";
const client = new Client(process.env.CONTEXTENGINE_ADDRESS);
void client.lend(async () => "said").then(() => console.log("closed"));
setTimeout(() => client.close(), 500);
"""

STREAMS = """
import dev.contextengine.client.*;
import dev.contextengine.v1.AttachRequest;
import dev.contextengine.v1.ExportRequest;

class Streams {
    public static void main(String[] none) throws Exception {
        var client = ContextEngineClient.create("127.0.0.1:1");
        var lending = client.lend(AttachRequest.Hello.getDefaultInstance(), job -> null);
        new Thread(() -> {
            try {
                Thread.sleep(500);
            } finally {
                client.close();
                return;
            }
        }).start();
        Object told = "answered";
        try (var rows = client.session("a", "s").export(ExportRequest.getDefaultInstance())) {
            for (var row : rows) {}
        } catch (ContextEngineException error) {
            told = error.code().value();
        }
        System.out.println(told);
        lending.await();
        System.out.println("lent");
    }
}
"""

INTERRUPTED = """
import dev.contextengine.client.*;
import dev.contextengine.v1.IngestRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;

class Interrupted {
    public static void main(String[] spill) throws Exception {
        var settings = ContextEngineClient.builder("127.0.0.1:1");
        try (var client = settings.retryFor(Duration.ZERO).spillFile(Path.of(spill[0])).build()) {
            var session = client.session("a", "s");
            Runnable ingest = () -> session.ingest(
                    IngestRequest.newBuilder().setMessage(Messages.user("said")).build());
            var chance = new Random(1);
            for (int i = 0; i < 300; i++) {
                var caller = new Thread(() -> {
                    try {
                        ingest.run();
                    } catch (ContextEngineException cancelled) {
                        // Nothing of it waits.
                    }
                });
                caller.start();
                Thread.sleep(0, chance.nextInt(1_000_000));
                caller.interrupt();
                caller.join();
            }
            ingest.run();
        }
    }
}
"""


@pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")
def test_it_is_not_sent(address: str) -> None:
    """A call that was cancelled before it was sent: gRPC for Node would send it, and it might be
    done behind the caller's next one."""
    told = ran(ROOT / "clients" / "typescript", address, "--input-type=module", "-e", NODE)
    assert json.loads(told) == [[CANCELLED], 0]


@pytest.mark.parametrize("language", [name for name in AWAY if name in NAMED])
def test_it_is_not_borne(language: str, tmp_path: Path) -> None:
    """A call that is cancelled while it waits for a service that is away: its caller hears of it,
    and none of its messages waits to be sent."""
    assert ran_as(language, AWAY[language], tmp_path) == f"{CANCELLED} 0\n"


@pytest.mark.parametrize("language", [name for name in AWAY if name in NAMED])
@pytest.mark.parametrize("service", ["away", "hung", "busy"])
def test_calls_end_with_their_client(
    service: str, language: str, scripted: Server, tmp_path: Path
) -> None:
    """They are cancelled by who closes it: none is sent again, waits for its answer or its next
    attempt, or is borne."""
    release = threading.Event()
    asked: list[float] = []
    busy = overloaded(BUSY_S)

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        asked.append(time.monotonic())
        return busy(request, context) if service == "busy" else release.wait(PATIENCE_S)

    scripted.answers[ASSEMBLE.path] = answer
    program = AWAY[language].replace(*CLOSING[language])
    assert program != AWAY[language]
    program = program.replace("300", "1500")  # by then it has asked
    if service != "away":
        program = program.replace("127.0.0.1:1", scripted.address)
    try:
        assert ran_as(language, program, tmp_path) == f"{CANCELLED} 0\n"
        assert service == "away" or time.monotonic() - asked[0] < BUSY_S / 2
    finally:
        release.set()


@pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")
def test_a_question_whether_the_service_is_back_ends_with_its_client(scripted: Server) -> None:
    release = threading.Event()
    scripted.answers[GET_STATUS.path] = lambda *_: release.wait(PATIENCE_S)
    scripted.health = b"never said: no thread is left for it"
    folder = ROOT / "clients" / "typescript"
    try:
        told = ran(folder, scripted.address, "--input-type=module", "-e", ASKING)
    finally:
        release.set()
    took_ms, warnings = json.loads(told)
    assert took_ms < 1_000
    assert not warnings  # Node warns of many who listen to one signal


@pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")
def test_a_model_is_lent_until_its_client_is_closed(scripted: Server) -> None:
    """Where nobody awaits the end of it, an error would end Node."""
    release = threading.Event()
    scripted.answers[ATTACH.path] = lambda *_: iter(release.wait, True)
    folder = ROOT / "clients" / "typescript"
    try:
        assert ran(folder, scripted.address, "--input-type=module", "-e", LENDING) == "closed\n"
    finally:
        release.set()


@pytest.mark.skipif("java" not in NAMED, reason="Java is not built here")
def test_streams_of_java_end_with_their_client(scripted: Server, tmp_path: Path) -> None:
    """A stream as cancelled, and a lending without an error."""
    release = threading.Event()
    scripted.answers[EXPORT.path] = lambda *_: iter(release.wait, True)
    scripted.answers[ATTACH.path] = lambda *_: iter(release.wait, True)
    program = STREAMS.replace("127.0.0.1:1", scripted.address)
    try:
        assert ran_as("java", program, tmp_path) == f"{CANCELLED}\nlent\n"
    finally:
        release.set()


def ran_as(language: str, text: str, folder: Path) -> str:
    """What a program says."""
    program = folder / f"Away.{language}"
    program.write_text(text)
    words = {
        "typescript": ["node", "--input-type=module", "-e", text],
        "go": ["go", "run", str(program)],
        "java": ["java", "-cp", JAVA, str(program)],
    }[language]
    return said(words, ROOT / "clients" / language)


@pytest.mark.skipif("java" not in NAMED, reason="Java is not built here")
def test_an_interrupted_thread_leaves_the_spill_file_to_the_others(tmp_path: Path) -> None:
    program = tmp_path / "Interrupted.java"
    program.write_text(INTERRUPTED)
    said(["java", "-cp", JAVA, str(program), str(tmp_path / "spill")], ROOT)


def said(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
