"""``cerflow stream`` from a topic of Kafka to another, with a real broker."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import cerflow
from cerflow.base.errors import InputError
from cerflow.cli.app import app
from cerflow.cli.spark import streaming
from cerflow.cli.spark.streaming import _started
from cerflow.cli.stream_command import StreamOptions
from support.spark.file_streams import patiently
from support.spark.kafka import broker, messages_of, skip_without_kafka

pytestmark = pytest.mark.slow

QUERY = "SELECT a.v AS first, b.v AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY [k] WITHIN 1 SECOND"
EVENTS = [{"type": "AB"[n % 2], "t": 1000 + 50 * n, "k": n % 3, "v": n} for n in range(60)]


@pytest.fixture(scope="module")
def session(request):
    skip_without_kafka()
    return request.getfixturevalue("spark")


@pytest.fixture(scope="module")
def server(session, tmp_path_factory):
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


class Topics:
    def __init__(self, spark, server):
        self.spark, self.port = spark, server.port
        self.address = f"127.0.0.1:{server.port}"

    def send(self, topic, events, partitions=None):
        """Send events, in turn to so many partitions."""
        places = [None if partitions is None else event["v"] % partitions for event in events]
        rows = [(str(event["k"]), json.dumps(event), place) for event, place in zip(events, places)]
        frame = self.spark.createDataFrame(rows, "key string, value string, partition int").coalesce(1)
        frame.write.format("kafka").options(**{"kafka.bootstrap.servers": self.address, "topic": topic}).save()

    def add_partitions(self, topic, count):
        java = self.spark._jvm
        settings = java.java.util.Properties()
        settings.put("bootstrap.servers", self.address)
        admin = java.org.apache.kafka.clients.admin.Admin.create(settings)
        wanted = java.org.apache.kafka.clients.admin.NewPartitions.increaseTo(count)
        admin.createPartitions(java.java.util.Map.of(topic, wanted)).all().get()
        admin.close()

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


def test_a_partition_may_stall_and_others_be_added_and_what_was_written_may_be_deleted(session, server, tmp_path):
    """Events of a partition that stalls wait for no longer than the delay; a new one is read from its beginning."""
    topics = Topics(session, server)
    folder = tmp_path / "found"
    options = StreamOptions(
        input=f"kafka://{topics.address}/ticks",
        columns="type string, t bigint, k int, v int",
        time="t",
        output=str(folder),
        output_format="json",
        checkpoint=str(tmp_path / "checkpoint"),
        delay="1 second",
        buckets=2,
    )
    topics.send("ticks", EVENTS[:20], partitions=2)
    running = _started(cerflow.parse(QUERY), options, session)
    sent = 20

    def send(events, partitions):
        nonlocal sent
        topics.send("ticks", events, partitions)
        sent += len(events)
        while running.status is None or running.status.totals["events"] < sent:
            assert not running.await_termination(0.2)

    # Partition 1 stalls for 0.95 seconds of the events' time.
    send(EVENTS[20:40:2], 2)
    send(EVENTS[21:40:2], 2)
    send(EVENTS[40:42], 2)
    while running.query.status["isTriggerActive"] or running.query.status["isDataAvailable"]:
        assert not running.await_termination(0.2)
    found = pairs_in(folder)
    assert found
    shutil.rmtree(folder)
    topics.add_partitions("ticks", 3)
    send(EVENTS[42:], 3)
    # This stall was too long.
    send([{"type": "A", "t": 1000, "k": 1, "v": 1}], 2)
    assert running.stop(flush=True) == 0
    assert running.status.totals["late"] == 1
    found += pairs_in(folder)
    expected = cerflow.parse(QUERY).match(EVENTS, time="t").to_pylist()
    assert sorted(found) == sorted((row["first"], row["second"]) for row in expected)


def pairs_in(folder):
    """The matches that a stream has written by now."""
    lines = [line for path in folder.glob("batch=*/*.json") for line in path.read_text().splitlines()]
    return [(row["first"], row["second"]) for row in map(json.loads, lines)]


def test_a_malformed_message_is_named_by_its_place_and_shown_once(session, server, tmp_path):
    topics = Topics(session, server)
    topics.send("odd", EVENTS[:4], partitions=1)
    rows = [(0, '{"type": "A", "t": "soon", "k": 1, "v": 1}')]
    frame = session.createDataFrame(rows, "partition int, value string")
    frame.write.format("kafka").options(**{"kafka.bootstrap.servers": topics.address, "topic": "odd"}).save()
    arguments = ["stream", "-e", QUERY, "--input", f"kafka://{topics.address}/odd", "--time-column", "t", "--flush"]
    arguments += ["--columns", "type string, t bigint, k int, v int", "--delay", "1 second", "--available-now"]
    failed = CliRunner().invoke(app, [*arguments, "--checkpoint", str(tmp_path / "failed")])
    assert failed.exit_code == 1
    told = " ".join(failed.stderr.split())
    assert told.count('"soon"') == 1
    assert "kafka_partition: 0, kafka_offset: 4" in told
    assert "kafka_sequence" not in told
    skipped = CliRunner().invoke(
        app, [*arguments, "--checkpoint", str(tmp_path / "skipped"), "--on-bad-record", "skip"]
    )
    assert skipped.exit_code == 0, skipped.stderr
    assert "5 events, 0 late, 1 bad" in skipped.stderr


def test_messages_need_no_types_if_the_query_names_none(session, server, tmp_path):
    topics = Topics(session, server)
    events = [{name: value for name, value in event.items() if name != "type"} for event in EVENTS]
    topics.send("logins", events)
    query = "DEFINE low AS v % 2 = 0, high AS v % 2 = 1 SELECT a.v, b.v WHERE low AS a ; high AS b PARTITION BY k"
    arguments = ["stream", "-e", query, "--input", f"kafka://{topics.address}/logins", "--time-column", "t"]
    arguments += ["--columns", "t bigint, k int, v int", "--delay", "1 second", "--buckets", "2"]
    arguments += ["--output", f"kafka://{topics.address}/pairs", "--checkpoint", str(tmp_path), "--available-now"]
    done = CliRunner().invoke(app, [*arguments, "--flush"])
    assert done.exit_code == 0, done.stderr
    expected = cerflow.parse(query).match(events, time="t").to_pylist()
    assert sorted((row["a_v"], row["b_v"]) for _, row in topics.read("pairs")) == sorted(
        (row["a_v"], row["b_v"]) for row in expected
    )


def test_messages_may_have_nested_attributes(spark, tmp_path, monkeypatch):
    """No broker is needed: the messages come from a folder, with the columns that Kafka's source gives them."""
    events = [
        {"meta": {"kind": "AB"[n % 2], "at": 1000 + 50 * n}, "device": {"id": n % 3, "os": "xyz"[n // 6 % 3]}, "v": n}
        for n in range(40)
    ]
    messages = [*map(json.dumps, events), '{"meta": {"kind": "A"}, "v": 1}', '{"meta": 5, "v": 2}', '{"v": 3}']
    rows = [(message.encode(), 0, place) for place, message in enumerate(messages)]
    schema = "value binary, partition int, offset bigint"
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(tmp_path / "topic"))
    monkeypatch.setattr(
        streaming, "_messages", lambda spark, servers, topic: spark.readStream.schema(schema).parquet(topic)
    )
    query = (
        "SELECT a.device.os, b.v WHERE (A AS a ; B AS b) FILTER a.device.os = b.device.os "
        "PARTITION BY device.id WITHIN 1 SECOND"
    )
    arguments = ["stream", "-e", query, "--input", f"kafka://host:9092/{tmp_path / 'topic'}", "--buckets", "2"]
    arguments += ["--columns", "meta struct<kind: string, at: bigint>, device struct<id: int, os: string>, v int"]
    arguments += ["--type-column", "meta.kind", "--time-column", "meta.at", "--delay", "1 millisecond"]
    arguments += ["--on-bad-record", "skip", "--available-now", "--output-format", "json"]
    arguments += ["--output", str(tmp_path / "found"), "--checkpoint", str(tmp_path / "checkpoint")]

    def ended():
        done = CliRunner().invoke(app, arguments)
        if done.exit_code:
            raise InputError(done.stderr)
        return done.stderr

    assert "43 events, 0 late, 3 bad" in patiently(ended)
    lines = [line for path in (tmp_path / "found").glob("batch=*/*.json") for line in path.read_text().splitlines()]
    found = [{name: row[name] for name in ("device_id", "a_device_os", "b_v")} for row in map(json.loads, lines)]
    wanted = cerflow.parse(query).match(events, type="meta.kind", time="meta.at").to_pylist()
    assert len(wanted) > 10
    # The last event waits for the watermark, and B has the last place.
    assert {str(row) for row in found} == {
        str({name: row[name] for name in ("device_id", "a_device_os", "b_v")}) for row in wanted if row["b_v"] < 39
    }
