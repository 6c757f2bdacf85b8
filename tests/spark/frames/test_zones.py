"""Types of columns in the zone of the session, also where PySpark gives UTC."""

import pyarrow as pa

from cerflow.spark.frames.schemas import _in_zone


def test_timestamps_get_the_zone_wherever_they_stand():
    def made(zone):
        instant = pa.timestamp("us", zone)
        plain = pa.field("plain", pa.timestamp("us"), nullable=False)
        return pa.struct(
            [("list", pa.list_(instant)), ("map", pa.map_(pa.string(), instant)), plain, ("k", pa.int64())]
        )

    assert _in_zone(made("UTC"), "Europe/Rome") == made("Europe/Rome")
