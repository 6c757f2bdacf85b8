"""Numbers of matches on real trades, known from two independent computations (register transducers §12)."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

import cerflow

STOCKS = Path(__file__).parents[3] / "shared" / "data" / "stocks.csv.gz"
pytestmark = pytest.mark.skipif(
    not STOCKS.exists(), reason=f"the stock data {STOCKS.name} is not beside the repository"
)

NAMES = "a.name = 'INTC' AND b.name = 'RIMM' AND c.name = 'QQQ'"
SEQ3 = f"SELECT * WHERE (SELL AS a ; BUY AS b ; BUY AS c) FILTER {NAMES} AND c.price > a.price"
PLAIN = f"SELECT * WHERE (SELL AS a ; BUY AS b ; BUY AS c) FILTER {NAMES}"
K3 = f"SELECT * WHERE (SELL AS a ; (BUY AS b)+ ; BUY AS c) FILTER {NAMES} AND b.price < 500 AND c.price > a.price"
EITHER = "(BUY OR SELL)"
COMPANIES = "a.name = 'MSFT' AND b.name = 'ORCL' AND c.name = 'CSCO' AND d.name = 'AMAT' AND d.price < a.price"
HIGH = "a.price > 26.0 AND b.price > 11.14 AND d.price >= 18.92"
Q = {
    "q1": f"SELECT * WHERE (SELL AS a ; BUY AS b ; BUY AS c ; SELL AS d) FILTER {COMPANIES}",
    "q2": f"SELECT * WHERE (SELL AS a ; BUY AS b ; BUY AS c ; SELL AS d) FILTER {COMPANIES} AND {HIGH}",
    "q3": f"SELECT * WHERE (SELL AS a ; {EITHER} AS b ; {EITHER} AS c ; SELL AS d) FILTER {COMPANIES}",
    "q4": f"SELECT * WHERE (SELL AS a ; {EITHER} AS b ; {EITHER} AS c ; SELL AS d) FILTER {COMPANIES} AND {HIGH}",
    "q5": f"SELECT * WHERE (SELL AS a ; ({EITHER} AS b)+ ; SELL AS d) FILTER a.name = 'MSFT' AND d.name = 'AMAT' "
    "AND b.name = 'QQQ' AND b.volume = 4000 AND d.price < a.price",
}
COUNTS = [
    *((SEQ3, window, count) for window, count in ((500, 819), (1000, 3_525), (2000, 11_438), (5000, 98_995))),
    (PLAIN, 10_000, 345_801),
    *((K3, window, count) for window, count in ((500, 1_367), (1000, 12_427), (2000, 128_580))),
    *((Q[name], 1000, n) for name, n in (("q1", 686), ("q2", 0), ("q3", 29_069), ("q4", 272), ("q5", 5_287))),
]


@pytest.fixture(scope="module")
def stocks():
    return csv.read_csv(STOCKS)


@pytest.mark.parametrize(("text", "window", "count"), COUNTS, ids=[f"{n} within {w}" for _, w, n in COUNTS])
def test_counts(text, window, count, stocks):
    matches = cerflow.parse(f"{text} WITHIN {window} [stock_time]").match(stocks, type="event_type", time="stock_time")
    assert matches.count() == count
    if count < 50_000:
        assert sum(batch.num_rows for batch in matches.to_batches()) == count


def test_counting_very_many_lists_none_of_them(stocks):
    query = cerflow.parse(f"{K3} WITHIN 5000 [stock_time]")
    recognizer = query.recognizer(stocks.schema, type="event_type", time="stock_time")
    recognizer.push(stocks.slice(0, 1))
    matches = recognizer.push(stocks.slice(1))
    assert matches.count() == 2_238_660_353_850


def test_a_window_of_time_is_the_same(stocks):
    query = cerflow.parse(f"{SEQ3} WITHIN 1 SECONDS")
    assert query.match(stocks, type="event_type", time="stock_time").count() == 3_525


def test_in_small_batches_and_from_snapshots(stocks):
    query = cerflow.parse(f"{K3} WITHIN 1000 [stock_time]")
    recognizer = query.recognizer(stocks.schema, type="event_type", time="stock_time")
    tables = []
    for at in range(0, stocks.num_rows, 10_007):
        tables.append(recognizer.push(stocks.slice(at, 10_007)).to_arrow())
        recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    whole = query.match(stocks, type="event_type", time="stock_time").to_arrow()
    assert pa.concat_tables(tables).combine_chunks() == whole.combine_chunks()
