"""``cerflow stream`` from a topic of Kafka to another, with a real broker."""

import json

import pytest
from typer.testing import CliRunner

import cerflow
from cerflow.cli.app import app
from support.spark.kafka import broker, messages_of, skip_without_kafka
from support.spark.sessions import small_session

pytestmark = pytest.mark.slow

QUERY = "SELECT a.v AS first, b.v AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY [k] WITHIN 1 SECOND"
EVENTS = [{"type": "AB"[n % 2], "t": 1000 + 50 * n, "k": n % 3, "v": n} for n in range(60)]


@pytest.fixture(scope="module")
def session():
    skip_without_kafka()
    with small_session() as spark:
        yield spark


@pytest.fixture(scope="module")
def server(session, tmp_path_factory):
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


class Topics:
    def __init__(self, spark, server):
        self.spark, self.port = spark, server.port
        self.address = f"127.0.0.1:{server.port}"

    def send(self, topic, events):
        rows = [(str(event["k"]), json.dumps(event)) for event in events]
        frame = self.spark.createDataFrame(rows, "key string, value string").coalesce(1)
        frame.write.format("kafka").options(**{"kafka.bootstrap.servers": self.address, "topic": topic}).save()

    def read(self, topic):
        return [(key, json.loads(value)) for key, value in messages_of(self.spark, self.port, topic)]


def test_topics_become_topics_and_a_replay_repeats_the_keys(session, server, tmp_path):
    topics = Topics(session, server)
    checkpoint = tmp_path / "checkpoint"
    arguments = ["stream", "-e", QUERY, "--input", f"kafka://{topics.address}/trades", "--time-column", "t"]
    arguments += ["--columns", "type string, t bigint, k int, v int", "--delay", "1 second", "--buckets", "2"]
    arguments += ["--output", f"kafka://{topics.address}/rises", "--checkpoint", str(checkpoint), "--available-now"]
    topics.send("trades", EVENTS[:30])
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.stderr
    server.kill()
    server.start()
    topics.send("trades", EVENTS[30:])
    second = CliRunner().invoke(app, [*arguments, "--flush"])
    assert second.exit_code == 0, second.stderr
    expected = cerflow.parse(QUERY).match(EVENTS, time="t").to_pylist()
    wanted = sorted((row["first"], row["second"]) for row in expected)
    before = topics.read("rises")
    assert sorted((row["first"], row["second"]) for _, row in before) == wanted
    assert len({key for key, _ in before}) == len(before) == len(wanted)
    commits = sorted(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    written = json.loads((checkpoint / "cerflow" / "status.json").read_text())["batch"]
    for number in commits:
        if number >= written:
            for name in (str(number), f".{number}.crc"):
                (checkpoint / "commits" / name).unlink()
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0, again.stderr
    after = topics.read("rises")
    assert len(after) >= len(before)
    assert dict(after) == dict(before)
