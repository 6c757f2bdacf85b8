"""Trips of New York taxis, made from a seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from cerflow.base.errors import ArgumentError

#: Chains of three routes, each beginning where the previous one ended: zones, and the shares of all trips.
ROUTES = (
    ("East Harlem North", "Midwood", "Gravesend", "West Brighton"),
    ("Astoria", "Bushwick North", "Canarsie", "Sunset Park West"),
    ("Jamaica", "Flushing", "Corona", "Elmhurst"),
    ("Mott Haven", "Belmont", "Norwood", "Woodlawn"),
)
_SHARES = (0.00115, 0.006, 0.00115)
#: How often a tour begins: of each chain its first route, a long and a short trip on the second, and a longer one on
#: the third, this many trips apart at least and at most; and the miles of these trips.
_TOURS = 8e-6
_TOUR = (0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11)
_MILES = (1.5, 4.5, 1.0, 6.0)
_APART = (8, 40)
#: Where all other trips begin and end.
_ZONES = (
    *("Alphabet City", "Battery Park", "Chinatown", "Clinton East", "East Village", "Gramercy", "JFK Airport"),
    *("Lincoln Square East", "Midtown Center", "Penn Station", "SoHo", "Times Square", "Union Square"),
    *("Upper East Side North", "Upper West Side South", "Yorkville West"),
)
_START = np.datetime64("2024-01-12T00:00:00", "s")
#: Trips that end, per second.
_RATE = 5.0


def taxis(events: int = 200_000, seed: int = 7) -> pa.Table:
    """Trips in the order in which they end, about five a second.

    The columns are ``type`` (TRIP), ``id`` (1, 2, …), ``pickup_zone``, ``dropoff_zone``, ``trip_distance`` (miles),
    ``trip_duration`` (s), ``fare_amount``, ``tip_amount`` and ``total_amount`` (dollars), ``time`` (timestamp in s)
    and ``timestamp`` (s since the first second).
    The patterns of the paper on symbolic register transducers (§7) match about as often as in its trips: those of few
    steps by chance, longer ones in tours along all chains of `ROUTES`.
    The same arguments give the same table. Raises `ArgumentError` if ``events`` is negative.
    """
    if events < 0:
        raise ArgumentError(f"the number of events must not be negative, but is {events}")
    random = np.random.default_rng(seed)
    moments = np.cumsum(random.exponential(1 / _RATE, size=events)).astype(np.int64)
    routes = [pair for chain in ROUTES for pair in pairwise(chain)]
    shares = np.array([*_SHARES * len(ROUTES), 0.0])
    shares[-1] = 1 - shares.sum()
    route = random.choice(len(shares), size=events, p=shares)
    distance = np.round(0.3 + random.exponential(1.2, size=events), 2)
    for start in random.integers(max(events, 1), size=round(events * _TOURS)):
        tour = start + random.integers(*_APART) * np.arange(len(_TOUR))
        inside = tour < events
        route[tour[inside]] = np.array(_TOUR)[inside]
        distance[tour[inside]] = np.resize(_MILES, len(_TOUR))[inside]
    ends = [random.choice(len(_ZONES), size=events) + len(routes) for _ in range(2)]
    pickup, dropoff = (np.where(route < len(routes), route, others) for others in ends)
    duration = np.round(120 + distance * random.uniform(90.0, 330.0, size=events)).astype(np.int64)
    fare = np.round(2.5 + 2.0 * distance + 0.005 * duration, 2)
    tip = np.round(np.where(random.random(events) < 0.6, 0.0, fare * random.uniform(0.05, 0.25, size=events)), 2)
    return pa.table(
        {
            "type": pa.array(["TRIP"]).take(pa.array(np.zeros(events, dtype=np.int8))),
            "id": np.arange(1, events + 1, dtype=np.int64),
            "pickup_zone": pa.array([zone for zone, _ in routes] + list(_ZONES)).take(pa.array(pickup)),
            "dropoff_zone": pa.array([zone for _, zone in routes] + list(_ZONES)).take(pa.array(dropoff)),
            "trip_distance": distance,
            "trip_duration": duration,
            "fare_amount": fare,
            "tip_amount": tip,
            "total_amount": np.round(fare + tip + 0.5, 2),
            "time": pa.array(_START + moments.astype("timedelta64[s]")),
            "timestamp": moments,
        }
    )
