"""Runs CORE; a script of its own for the interpreter that has the package pycer and nothing else.

Each line of standard input is a request, ``{"file": …, "query": …}``: a CSV file of ticks, and a query in CEQL; the
answer is a line of JSON. Events are made before the time is taken, and the query is compiled. What is timed is
CORE's work: sending the events to its engine and waiting for all its output, which its offline server writes as text
in C++. Closing a server waits a tenth of a second; what it takes without events is taken off.
"""

import csv
import json
import os
import sys
import time

import pycer

ATTRIBUTES = "{ id:int, name:string, volume:int, price:double, stock_time:int }"


def main() -> None:
    """Answer the requests on standard input until it ends."""
    # The package writes to standard output what it logs.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    idle = min(run("SELECT * FROM S WHERE BUY as b", declaration(["BUY"]), []) for _ in range(3))
    print(json.dumps({"idle": idle[:2]}), file=answers, flush=True)
    file, stream, events = "", "", []
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request["file"] != file:
                stream, events = read(request["file"])
                file = request["file"]
            seconds, processor, output = run(request["query"], stream, events)
            reply = {
                "events": len(events),
                "seconds": seconds - idle[0],
                "processor": processor - idle[1],
                "matches": str(output.count("\n")),
                "bytes": len(output),
            }
        except Exception as failure:
            reply = {"error": f"{type(failure).__name__}: {failure}".splitlines()[0]}
        print(json.dumps(reply), file=answers, flush=True)


def declaration(kinds: list[str]) -> str:
    """A stream of events of these types, in CORE's words."""
    return "CREATE STREAM S {\n" + ",\n".join(f"EVENT {kind} {ATTRIBUTES}" for kind in kinds) + "\n}\n"


def read(path: str) -> tuple[str, list[pycer.PyEvent]]:
    """The stream of a file as CORE declares it, and its events in CORE's form."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[1:]
    stream = declaration(sorted({row[0] for row in rows}))
    server = pycer.PyOfflineServer()
    numbers = {event.name: event.id for event in server.declare_stream(stream).events_info}
    server.get_output()
    return stream, [event(numbers[kind], *row) for kind, *row in rows]


def event(kind: int, number: str, name: str, volume: str, price: str, moment: str) -> pycer.PyEvent:
    """One tick."""
    values = [
        pycer.PyIntValue(int(number)),
        pycer.PyStringValue(name),
        pycer.PyIntValue(int(volume)),
        pycer.PyDoubleValue(float(price)),
        pycer.PyIntValue(int(moment)),
    ]
    return pycer.PyEvent(kind, values, pycer.PyIntValue(int(moment)))


def run(query: str, stream: str, events: list[pycer.PyEvent]) -> tuple[float, float, str]:
    """Seconds for a query over the events, those of all processors, and what CORE wrote: a line for each match."""
    server = pycer.PyOfflineServer()
    server.declare_stream(stream)
    server.add_query(query)
    used, begin = time.process_time(), time.perf_counter()
    server.send_events(events)
    output = server.get_output()
    return time.perf_counter() - begin, time.process_time() - used, output


if __name__ == "__main__":
    main()
