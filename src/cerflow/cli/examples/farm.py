"""The farm sensors in ten lines: which plots got hot and then dry within ten minutes?"""

import cerflow
from cerflow.cli.examples import farm_readings, query_text

if __name__ == "__main__":
    query = cerflow.parse(query_text("farm"))
    for match in query.match(farm_readings(), time="time"):
        hot, dry = match["events"]
        print(f"plot {hot['id']}: {hot['value']} °C at {hot['time']:%H:%M}, {dry['value']} % at {dry['time']:%H:%M}")
