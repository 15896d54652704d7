"""The life of a worker process: read a call, make it, write what came of it, until there are no
more.

Run as `python -m contextengine_server.summarize.workers.process NICE`; the other end is
`summarize.workers.pool`.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import BinaryIO

from contextengine_server.summarize.request import LENGTH, SummarizerFailed


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answers calls until the other end closes, which it also does by dying."""
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        payload = requests.read(LENGTH.unpack(head)[0])
        try:
            function, args, kwargs = pickle.loads(payload)
            reply = pickle.dumps((True, function(*args, **kwargs)), pickle.HIGHEST_PROTOCOL)
        except SummarizerFailed as error:
            reply = pickle.dumps((False, str(error)))
        except Exception as error:
            # The type alone: the text of an error may quote messages.
            reply = pickle.dumps((False, f"raised {type(error).__name__}"))
        replies.write(LENGTH.pack(len(reply)) + reply)
        replies.flush()


def main() -> None:
    """Makes this process a worker."""
    # Ctrl-C reaches the whole process group; the server decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(int(sys.argv[1]))
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a library prints must not get among the replies.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, replies)
    except BrokenPipeError:
        # The server was killed while this worked: nobody waits for the reply, and what is left of
        # it cannot be written at the end either.
        os._exit(0)


if __name__ == "__main__":
    main()
