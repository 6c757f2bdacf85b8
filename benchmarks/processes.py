"""Processes that answer lines with lines of JSON, under a time limit, and how much memory they had at most."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["OverLimitError", "ProcessDiedError", "Worker", "answer_lines", "forget_peak", "peak", "peak_of"]


def answer_lines(answer: Callable[[Any], Mapping[str, Any]]) -> None:
    """Answer the requests on standard input until it ends, errors included: what a process after a `Worker` does."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as failure:
            reply = {"error": f"{type(failure).__name__}: {failure}".splitlines()[0]}
        print(json.dumps(reply), flush=True)


def forget_peak(process: int | str = "self") -> None:
    """Begin again to note the most memory a process has (Linux; elsewhere the peak is that of its whole life)."""
    with suppress(OSError):
        Path(f"/proc/{process}/clear_refs").write_text("5")


def peak(process: int | str = "self") -> float | None:
    """The most memory that a process had, in MB; None where the system does not tell."""
    try:
        return peak_of(Path(f"/proc/{process}/status").read_text())
    except OSError:
        return None


def peak_of(status: str) -> float | None:
    """The most memory that a process had, in MB, from its status as Linux writes it."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return None


class OverLimitError(Exception):
    """No answer came within the limit; the process was ended."""


class ProcessDiedError(Exception):
    """The process ended without an answer."""


class Worker:
    """A process started by a command; its first line says that it is ready."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        start_limit: float = 300,
    ) -> None:
        # Read after the process has ended.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=folder,
            env=environment,
        )
        self._pending = b""
        self.greeting = self._read(start_limit)

    def ask(self, line: str, limit: float) -> dict[str, Any]:
        """The answer to a line.

        Raises `OverLimitError` after this many seconds, `ProcessDiedError` if there is nobody to answer.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise ProcessDiedError(self._why()) from None
        return self._read(limit)

    def forget_peak(self) -> None:
        """Begin again to note the most memory the process has."""
        forget_peak(self._process.pid)

    def peak(self) -> float | None:
        """The most memory the process had, in MB; None where the system does not tell."""
        return peak(self._process.pid)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self, limit: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        end = time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, end - time.monotonic())):
                    self.close()
                    raise OverLimitError
                some = os.read(self._process.stdout.fileno(), 1 << 16)
                if not some:
                    self.close()
                    raise ProcessDiedError(self._why())
                self._pending += some
        line, self._pending = self._pending.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _why(self) -> str:
        """The last line that the process wrote to standard error."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it ended without a word"
