import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cerflow.examples import farm_readings, query_names, query_text, sensors, smart_homes, stocks, taxis
from cerflow.language.parser import parse_query


def test_stocks_have_the_promised_columns():
    table = stocks(1_000)
    assert table.schema == pa.schema(
        [
            ("type", pa.string()),
            ("id", pa.int64()),
            ("name", pa.string()),
            ("volume", pa.int64()),
            ("price", pa.float64()),
            ("time", pa.timestamp("ms")),
            ("stock_time", pa.int64()),
        ]
    )
    assert all(column.null_count == 0 for column in table.columns)


def test_stocks_look_like_a_trading_day():
    table = stocks(50_000)
    moments = table.column("stock_time").to_numpy()
    assert (np.diff(moments) >= 0).all()
    assert moments[0] >= 9.5 * 3_600_000
    assert moments[-1] < 16 * 3_600_000
    assert len(pc.unique(table.column("name"))) == 10
    assert set(pc.unique(table.column("type")).to_pylist()) == {"BUY", "SELL"}
    # Busier at the opening than at noon.
    first_hour = (moments < 10.5 * 3_600_000).mean()
    noon = ((moments >= 12 * 3_600_000) & (moments < 13 * 3_600_000)).mean()
    assert first_hour > 2 * noon
    for name in pc.unique(table.column("name")).to_pylist():
        prices = table.filter(pc.equal(table.column("name"), name)).column("price").to_numpy()
        assert prices.min() > 0
        assert abs(np.diff(np.log(prices))).max() < 0.05
        assert np.allclose(prices * 100, np.round(prices * 100))


def test_time_and_stock_time_agree():
    table = stocks(500)
    midnight = np.datetime64("2024-03-15", "ms")
    elapsed = (table.column("time").to_numpy() - midnight).astype(np.int64)
    assert (elapsed == table.column("stock_time").to_numpy()).all()


@pytest.mark.parametrize("make", [stocks, sensors, smart_homes, taxis])
def test_the_seed_decides(make):
    assert make(500, 3).equals(make(500, 3))
    assert not make(500, 3).equals(make(500, 4))


@pytest.mark.parametrize("make", [stocks, sensors, smart_homes, taxis])
@pytest.mark.parametrize("events", [0, 1, 7])
def test_small_streams(make, events):
    assert len(make(events)) == events


@pytest.mark.parametrize("make", [stocks, sensors, smart_homes, taxis])
def test_a_negative_number_of_events_is_refused(make):
    with pytest.raises(ValueError, match="-1"):
        make(-1)


def test_no_plots_are_refused():
    with pytest.raises(ValueError, match="plots"):
        sensors(5, plots=0)


def test_sensors_have_the_columns_of_the_farm():
    assert sensors(10).schema == farm_readings().schema
    assert len(farm_readings()) == 9


def test_the_queries_of_the_package_are_queries():
    assert query_names() == ("dip", "dip_count", "farm", "power_rise", "taxi_chain")
    assert query_names("sremo") == ("power_rise", "taxi_chain")
    for name in query_names():
        assert parse_query(query_text(name)).window is not None
    with pytest.raises(FileNotFoundError):
        query_text("nothing")


@pytest.mark.parametrize(("make", "last"), [(smart_homes, 3), (taxis, 220)])
def test_homes_and_trips_are_in_order_of_time(make, last):
    table = make(1_000)
    moments = table.column("timestamp").to_numpy()
    assert (np.diff(moments) >= 0).all()
    assert 0.5 * last < moments[-1] < 2 * last
    elapsed = table.column("time").to_numpy() - table.column("time").to_numpy()[0]
    assert (elapsed.astype(np.int64) == moments - moments[0]).all()
    assert all(column.null_count == 0 for column in table.columns)
