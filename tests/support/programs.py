"""Programs that several tests use."""

BURSTS = """
-- Three failures of one machine within ten seconds.
DEFINE burst AS
  SELECT count(f) AS size, first(f.v) AS level FROM log WHERE FAIL{3} AS f
  PARTITION BY machine WITHIN 10 SECONDS
;
SELECT max(b.level) AS level FROM burst
WHERE burst{5} AS b PARTITION BY machine WITHIN 1 HOUR
"""

DIP = "DEFINE dip AS SELECT a.v AS low, b.v AS high FROM log WHERE A AS a ; B AS b;\n"
