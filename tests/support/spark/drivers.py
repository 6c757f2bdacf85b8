"""Drivers of streams in processes of their own, which tests kill."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from support.spark import killed_stream

#: The folders that a stream writes.
KEPT = ("checkpoint", "output", "letters")
#: How long a driver may take for its next micro-batch, in seconds.
PATIENCE = 1200.0


class Driver:
    """A driver in a session of its own: the driver, its JVM and the workers."""

    def __init__(self, folder, query, sink):
        self.folder = folder
        command = [sys.executable, killed_stream.__file__, str(folder), query, sink]
        path = os.pathsep.join([str(Path(killed_stream.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        with (folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "PYTHONPATH": path}
            )

    @property
    def done(self):
        return (self.folder / "done").exists()

    def wait_for_progress(self, count=1):
        """Wait for some more micro-batches, or the end."""
        before = self.batches()
        end = time.monotonic() + PATIENCE
        while not self.done and self.batches() < before + count:
            assert time.monotonic() < end, self.told()
            assert self.process.poll() is None, self.told()
            time.sleep(0.02)

    def wait_for_end(self):
        while not self.done:
            self.wait_for_progress()

    def told(self):
        return (self.folder / "log").read_text()[-2000:]

    def batches(self):
        commits = self.folder / "checkpoint" / "commits"
        return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0

    def halts(self, chosen):
        """Halt all whenever files appear of which some are chosen, and give their names, up to the end of the driver.

        What is there is then what a loss of power would leave. Names are relative to the folder, without the parts that
        are random.
        """
        seen, writers, end = set(files_in(self.folder)), [], time.monotonic() + PATIENCE
        while not self.done and self.process.poll() is None:
            assert time.monotonic() < end, self.told()
            new = set(files_in(self.folder)) - seen
            seen |= new
            found = [name for name in sorted(map(plain_name, new)) if chosen(name)]
            if found:
                # To look for all processes takes longer than writing some files.
                for number in writers:
                    os.kill(number, signal.SIGSTOP)
                self._signal(signal.SIGSTOP)
                yield from found
                self._signal(signal.SIGCONT)
            writers = writers or list(self._processes(lambda command: b"/java" in command.split(b"\0")[0]))
            time.sleep(0.0005)
        assert self.done, self.told()

    def kill(self):
        """End all at once, as a loss of power would."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def kill_workers(self):
        """End the processes of Python that Spark has started; gives how many there were."""
        return self._signal(signal.SIGKILL, lambda command: b"pyspark.daemon" in command)

    def _signal(self, number, chosen=lambda command: True):
        """Send a signal to the chosen processes of the driver's session; gives how many got it."""
        told = 0
        for process in self._processes(chosen):
            with suppress(OSError):
                os.kill(process, number)
                told += 1
        return told

    def _processes(self, chosen):
        """The numbers of the chosen processes of the driver's session; Spark gives some a group of their own."""
        for entry in Path("/proc").iterdir():
            with suppress(ValueError, OSError):
                number = int(entry.name)
                if os.getsid(number) == self.process.pid and chosen((entry / "cmdline").read_bytes()):
                    yield number


def files_in(folder):
    """The names of the files of a stream: its checkpoint, its output and its dead letters; without check sums."""
    for name in KEPT:
        for path, _, files in os.walk(folder / name):
            found = (os.path.join(path, file) for file in files if not file.endswith(".crc"))
            yield from (os.path.relpath(file, folder) for file in found)


def plain_name(name):
    """The name of a file without what differs whenever it is written."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}(_\d+)?|attempt_\w+|\.pid\d+", "*", name)
