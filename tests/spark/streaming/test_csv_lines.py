"""Lines of CSV in the order of the columns of a stream; without Spark."""

import pyarrow as pa

from cerflow.spark.streaming.csv_lines import lines_by_name


def lines_of(path, columns, rows=None, start=0, delimiter=","):
    """The lines as they are to be parsed, of a file read in batches of two rows."""
    rows = path.read_text("utf-8-sig").splitlines() if rows is None else rows
    batches = [
        pa.record_batch(
            [pa.array(some), pa.array([path.as_uri()] * len(some)), pa.array([start] * len(some))], names="vfs"
        )
        for some in (rows[k : k + 2] for k in range(0, len(rows), 2))
    ]
    return [line for batch in lines_by_name(columns, delimiter, iter(batches)) for line in batch.column(0).to_pylist()]


def written(tmp_path, text):
    path = tmp_path / "some file.csv"
    path.write_text(text, "utf-8-sig")
    return path


def test_values_are_taken_by_the_names_in_the_header(tmp_path):
    columns = ("type", "t", "v")
    path = written(tmp_path, "type,t,v\nA,1,2\n\nB,2,3,4\n")
    assert lines_of(path, columns) == ["A,1,2", "B,2,3,4"]
    path = written(tmp_path, '\n\nV,other,"type"\n1,"a\\",b",A\n2,"a,b"\n3,,"B, C"\n4,x,"B\n')
    # Lines of another length, or with a quote that does not end, are malformed.
    expected = ["A,,1", '2,"a,b",,,,', '"B, C",,3', '4,x,"B,,,,']
    assert lines_of(path, columns) == expected
    path = written(tmp_path, path.read_text("utf-8-sig").replace(",", "|"))
    assert lines_of(path, columns, delimiter="|") == [line.replace(",", "|") for line in expected]
    path = written(tmp_path, path.read_text("utf-8-sig").replace("|", ","))
    # Another task reads the rest of a file, which has no header.
    assert lines_of(path, columns, ["5,x,A"], start=70) == ["A,,5"]


def test_a_file_without_a_header_has_malformed_lines_only(tmp_path):
    path = written(tmp_path, "A,1,2\nB,2,3\n")
    assert lines_of(path, ("type", "t", "v")) == ["A,1,2,,,,", "B,2,3,,,,"]
