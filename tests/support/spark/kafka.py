"""A broker of Kafka on this machine, if `scripts/fetch-kafka` has fetched it."""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_PATIENCE = 120.0
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def kafka_folder():
    """Where the broker and the connector are: CERFLOW_KAFKA, or ``.kafka`` in the project."""
    return Path(os.environ.get("CERFLOW_KAFKA", ROOT / ".kafka"))


def connector_jars():
    """The jars by which Spark reads and writes Kafka; none if they are not there."""
    return sorted(map(str, (kafka_folder() / "connector").glob("*.jar")))


def skip_without_kafka():
    if not connector_jars() or not (kafka_folder() / "broker").exists():
        pytest.skip("Kafka is not there; scripts/fetch-kafka .kafka gets it from Maven")


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Broker:
    """One broker, whose data stays in a folder when it is killed."""

    def __init__(self, folder):
        self.folder = folder
        self.port, controller = _free_ports(2)
        self._settings = folder / "server.properties"
        self._settings.write_text(_SETTINGS.format(port=self.port, controller=controller, logs=folder / "logs"))
        (folder / "log4j2.yaml").write_text("Configuration:\n  Loggers:\n    Root:\n      level: 'OFF'\n")
        self._java("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", self._settings).wait()

    def _java(self, name, *arguments):
        java = shutil.which("java") or str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
        command = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += [f"-Dlog4j2.configurationFile={self.folder / 'log4j2.yaml'}"]
        command += ["-cp", f"{kafka_folder() / 'broker'}/*", name, *map(str, arguments)]
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def start(self):
        self.process = self._java("kafka.Kafka", self._settings)
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    pytest.fail((self.folder / "log").read_text()[-2000:])
                time.sleep(0.1)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def broker(folder):
    """A broker that runs, killed at the end."""
    made = Broker(folder)
    made.start()
    try:
        yield made
    finally:
        made.kill()


def messages_of(spark, port, topic):
    """The keys and values of all messages of a topic."""
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": topic}
    frame = spark.read.format("kafka").options(**options).load()
    return [tuple(row) for row in frame.selectExpr("string(key)", "string(value)").collect()]
