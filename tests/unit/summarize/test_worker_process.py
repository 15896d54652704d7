"""A worker process whose server was killed ends without a word."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time

from contextengine_server.summarize.request import LENGTH
from contextengine_server.summarize.workers import process


def test_a_worker_whose_server_died_leaves_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", process.__name__, "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stderr is not None
        call = pickle.dumps((time.sleep, (0.2,), {}))
        worker.stdin.write(LENGTH.pack(len(call)) + call)
        worker.stdin.flush()
        worker.stdout.close()
        worker.stdin.close()
        assert worker.stderr.read() == b""
        assert worker.wait(30) == 0
