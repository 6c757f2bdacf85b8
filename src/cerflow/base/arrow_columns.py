"""Columns in a form that every compute function takes, whatever form they come in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Floats, Mask

_Part = TypeVar("_Part")
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

#: Decimals of at most so many digits are exact as floats if they are whole.
_DIGITS_EXACT = 15
#: The digits of decimals of 128 and 256 bits.
_DIGITS_128, _DIGITS_256 = 38, 76
#: Integers within such a distance of each other have a dictionary of all between them.
_NEAR = 1 << 12
#: This many values take less time one by one than the import of pandas.
_FEW = 10_000


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece, which is copied only if it is in several."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def pushed_together(parts: Iterable[_Part], size: Callable[[_Part], tuple[int, int]]) -> Iterator[list[_Part]]:
    """Parts of an input that are pushed at a time, as large pushes pay; ``size`` gives the rows and bytes of one."""
    waiting: list[_Part] = []
    rows = taken = 0
    for part in parts:
        more, own = size(part)
        if waiting and (rows + more > limits.PUSH_ROWS or taken + own > limits.PUSH_BYTES):
            yield waiting
            waiting, rows, taken = [], 0, 0
        waiting.append(part)
        rows, taken = rows + more, taken + own
    if waiting:
        yield waiting


def array_of_numbers(values: NDArray[Any], missing: Mask | None = None) -> pa.Array:
    """Integers or floats as an array, null where ``missing``; the memory is shared.

    ``pa.array``, ``pa.scalar`` and ``to_numpy`` import pandas where it is installed, which takes 0.2 s. So these
    functions do in their place what every query does.
    """
    known = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    buffers = [known, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def array_of_texts(texts: Sequence[str | None]) -> pa.Array:
    """The same of texts, which are copied; null where they are None."""
    encoded = [b"" if text is None else text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    data = [pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    known = np.array([text is not None for text in texts], bool)
    validity = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.large_string(), len(texts), [validity, *data]).cast(pa.string())


def numbers_of(column: pa.Array, null: float = 0) -> NDArray[Any]:
    """The integers or floats of an array, with a number for null; the memory is shared if there are no nulls."""
    width = np.dtype(column.type.to_pandas_dtype())
    if not len(column):
        return np.zeros(0, width)
    values = np.frombuffer(column.buffers()[1], width, column.offset + len(column))[column.offset :]
    return np.where(truths_of(column.is_valid()), values, width.type(null)) if column.null_count else values


def nan_as_null(values: pa.Array) -> pa.Array:
    """The array with null instead of NaN."""
    if not pa.types.is_floating(values.type):
        return values
    import pyarrow.compute as pc

    unknown = pc.is_nan(values.cast(pa.float32()) if pa.types.is_float16(values.type) else values)
    return pc.if_else(unknown, pa.nulls(1, values.type)[0], values) if pc.any(unknown).as_py() else values


def truths_of(column: pa.BooleanArray) -> Mask:
    """Truth values; null is false."""
    if not len(column):
        return np.zeros(0, bool)
    bits = np.frombuffer(column.buffers()[1], np.uint8)
    found = np.unpackbits(bits, count=column.offset + len(column), bitorder="little")
    truths = found[column.offset :].view(bool)
    return truths & truths_of(column.is_valid()) if column.null_count else truths


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """The type in which a column is read: with the same values, and a form that every compute function takes.

    Run ends are spelt out, and so are dictionaries of what is not text or within nested values; views become what they
    are views of, decimals of 32 and 64 bits those of 128, those with a negative scale such without, and halves of
    floats single ones. Indices have at least 32 bits, so that the texts of all batches together fit one dictionary.
    """
    if pa.types.is_run_end_encoded(data_type):
        return plain_type(data_type.value_type)
    if pa.types.is_dictionary(data_type):
        values = plain_type(data_type.value_type)
        is_text = pa.types.is_string(values) or pa.types.is_large_string(values)
        indices = pa.int32() if data_type.index_type.bit_width < 32 else data_type.index_type
        return pa.dictionary(indices, values) if is_text else values
    if pa.types.is_decimal(data_type):
        digits, scale = data_type.precision - min(data_type.scale, 0), max(data_type.scale, 0)
        if pa.types.is_decimal256(data_type) or digits > _DIGITS_128:
            return data_type if digits > _DIGITS_256 else pa.decimal256(digits, scale)
        return pa.decimal128(digits, scale)
    return pa.float32() if pa.types.is_float16(data_type) else _plain_within(data_type)


def without_codes(data_type: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary; any other type itself."""
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def with_plain_columns(table: Rows, columns: pa.Schema | None = None, *, views: bool = False) -> Rows:
    """The table or batch with columns of plain types (see `plain_type`), or of the types of ``columns``.

    With ``views`` columns of such texts stay as they are. Nulls that hide in a dictionary are where everybody looks for
    them. Raises pyarrow's errors for values that do not fit such a type.
    """
    for index, field in enumerate(table.schema):
        if views and pa.types.is_string_view(field.type):
            continue
        target = plain_type(field.type) if columns is None else columns.field(index).type
        column = table.column(index)
        coded, chunks = pa.types.is_dictionary(field.type), [column] if isinstance(column, pa.Array) else column.chunks
        if field.type != target or (coded and any(chunk.dictionary.null_count for chunk in chunks)):
            found = [plain_array(chunk, target) for chunk in chunks]
            plain = found[0] if isinstance(column, pa.Array) else pa.chunked_array(found, target)
            table = table.set_column(index, field.with_type(target), plain)
    return table


def without_views(columns: pa.Schema) -> pa.Schema:
    """The columns with texts in place of views of texts."""
    fields = [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in columns]
    return pa.schema(fields, columns.metadata)


def rows_taken(batch: pa.RecordBatch, at: NDArray[Any]) -> pa.RecordBatch:
    """The rows of a batch at these numbers, which must be within bounds; views of texts become texts."""
    if not any(map(pa.types.is_string_view, batch.schema.types)):
        return batch.take(array_of_numbers(at))
    return pa.RecordBatch.from_arrays([values_taken(c, at) for c in batch.columns], schema=without_views(batch.schema))


def values_taken(column: pa.Array, at: NDArray[Any]) -> pa.Array:
    """The values of a column at these numbers, which must be within bounds; views of texts become texts."""
    import pyarrow.compute as pc

    if not pa.types.is_string_view(column.type):
        return pc.take(column, array_of_numbers(at), boundscheck=False)
    # Arrow itself does not take from views.
    validity, views, *letters = column.buffers()
    rows = at.astype(np.int64) + column.offset
    if validity is not None:
        bits = np.frombuffer(validity, np.uint8)[rows >> 3] >> (rows & 7) & 1
        validity = pa.py_buffer(np.packbits(bits, bitorder="little"))
    some = np.frombuffer(views, "V16")[rows]
    return pa.Array.from_buffers(column.type, len(at), [validity, pa.py_buffer(some), *letters]).cast(pa.string())


def plain_array(column: pa.Array, target: pa.DataType) -> pa.Array:
    """The same for one column."""
    own = column.type
    if pa.types.is_run_end_encoded(own):
        # Arrow's own function does not take all values.
        rows = np.arange(column.offset, column.offset + len(column))
        runs = np.searchsorted(numbers_of(column.run_ends), rows, side="right")
        return plain_array(plain_array(column.values, plain_type(own.value_type)).take(array_of_numbers(runs)), target)
    if not pa.types.is_dictionary(own):
        return column if own == target else _cast(column, target)
    if own == target and not column.dictionary.null_count:
        return column
    values = plain_array(column.dictionary, plain_type(own.value_type))
    if pa.types.is_dictionary(target) and not values.null_count:
        # Indices beyond the dictionary stay: they count as null.
        indices = column.indices.cast(target.index_type, safe=False)
        found = pa.DictionaryArray.from_arrays(indices, values, safe=False)
        return found if found.type == target else found.cast(target)
    spelt = values.take(column.indices)
    return spelt.dictionary_encode().cast(target) if pa.types.is_dictionary(target) else spelt.cast(target)


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    """The column as another type; raises pyarrow's errors also where Arrow itself loses what values say."""
    own, found = column.type, column.cast(target)
    number = pa.types.is_integer(target) or pa.types.is_floating(target)
    if number and pa.types.is_boolean(own):
        raise pa.ArrowInvalid(f"truth values are not {target}; cast the column")
    if pa.types.is_timestamp(own) and pa.types.is_date(target) and not found.cast(own).equals(column):
        raise pa.ArrowInvalid(f"Casting from {own} to {target} would lose the time of the day; cast the column")
    if pa.types.is_floating(own) and pa.types.is_floating(target) and target.bit_width < own.bit_width:
        before, after = (numbers_of(some.cast(pa.float64())) for some in (column, found))
        grown = np.flatnonzero(np.isinf(after) & ~np.isinf(before))
        if len(grown):
            raise pa.ArrowInvalid(f"{before[grown[0]]} does not fit {target}; give the column a wider type")
    return found


def with_each_text_once(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same column, whose dictionary has no text twice; null where an index is beyond the dictionary."""
    import pyarrow.compute as pc

    texts = column.dictionary.unique()
    indices = numbers_of(column.indices)
    missing = truths_of(column.indices.is_null()) | (indices < 0) | (indices >= len(column.dictionary))
    numbers = numbers_of(pc.index_in(column.dictionary, texts))[np.where(missing, 0, indices)]
    return pa.DictionaryArray.from_arrays(array_of_numbers(numbers, missing).cast(column.indices.type), texts)


def encoded_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The texts of integers or booleans as a dictionary; each value is written once, however often it occurs."""
    if pa.types.is_run_end_encoded(column.type):
        import pyarrow.compute as pc

        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded, found = _near_numbers(column), []
    values: pa.Array | None = None
    for chunk in encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]:
        # All chunks have the same dictionary, as a rule.
        if values is None or not values.equals(chunk.dictionary):
            values, texts = chunk.dictionary, chunk.dictionary.cast(pa.string())
        found.append(pa.DictionaryArray.from_arrays(chunk.indices, texts))
    if isinstance(encoded, pa.ChunkedArray):
        return pa.chunked_array(found, pa.dictionary(pa.int32(), pa.string()))
    return found[0]


def _near_numbers(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Values as a dictionary; integers that lie close together are not looked up, but their distance is the index."""
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type) or not len(column):
        return column.dictionary_encode()
    least, greatest = (pc.min_max(column)[end].as_py() for end in ("min", "max"))
    if least is None or greatest - least >= min(_NEAR, len(column)):
        return column.dictionary_encode()
    found, width = [], np.dtype(column.type.to_pandas_dtype())
    values = array_of_numbers(np.arange(greatest - least + 1).astype(width) + width.type(least))
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        missing = ~truths_of(chunk.is_valid()) if chunk.null_count else None
        away = numbers_of(chunk, least) - width.type(least)
        # The distance may be beyond the greatest number of the type.
        away = away.view(f"u{width.itemsize}").astype(np.int32)
        found.append(pa.DictionaryArray.from_arrays(array_of_numbers(away, missing), values))
    return pa.chunked_array(found) if isinstance(column, pa.ChunkedArray) else found[0]


def nearest_floats(column: pa.Array) -> Floats:
    """The numbers of a column as floats, NaN for null.

    Of decimals that have at most 15 digits these are the nearest ones, which Arrow's cast may miss by the last bit.
    """
    if not pa.types.is_decimal128(column.type) or column.type.precision > _DIGITS_EXACT:
        return numbers_of(column.cast(pa.float64()), np.nan)
    begin, end, scale = column.offset, column.offset + len(column), column.type.scale
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * begin : 2 * end : 2]
    found = words / 10.0**scale
    return np.where(truths_of(column.is_valid()), found, np.nan) if column.null_count else found


def values_as_array(values: Sequence[Any], target: pa.DataType | None) -> pa.Array:
    """Python's values as an array of a type; None leaves the type to Arrow, whose errors are raised.

    Values that pandas takes for missing are null, and times of NumPy may have several units.
    """
    try:
        return _array_of(values, target)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        familiar = _familiar(values, target)
        if all(new is old for new, old in zip(familiar, values)):
            raise
        return _array_of(familiar, target)


def _familiar(values: Sequence[Any], target: pa.DataType | None) -> list[Any]:
    """Values for Arrow: None for those of pandas that are missing, and times of NumPy in one unit."""
    found = [None if _is_missing(value) else value for value in values]
    moments = [value for value in found if isinstance(value, np.datetime64 | np.timedelta64)]
    if len({type(value) for value in moments}) != 1:
        return found
    unit = getattr(target, "unit", None) or np.datetime_data(np.result_type(*moments))[0]
    form = f"{moments[0].dtype.kind}8[{unit if unit in ('s', 'ms', 'us', 'ns', 'D') else 's'}]"
    for k, value in enumerate(found):
        if isinstance(value, np.datetime64 | np.timedelta64):
            found[k] = value.astype(form)
            if found[k] != value:
                raise ValueError(f"the time {value} is not one of whole {unit}")
    return found


def _is_missing(value: object) -> bool:
    """Whether a value is pandas's NA or NaT, which need not be imported for that, or NumPy's NaT."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    kind = type(value)
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.partition(".")[0] == "pandas"


def _array_of(values: Sequence[Any], target: pa.DataType | None) -> pa.Array:
    """The same for values of Python alone.

    Arrow before version 23 does not make every dictionary from Python's values, but casts to all of them.
    """
    found = None if len(values) > _FEW or "pandas" in sys.modules else _array_of_one_kind(values)
    if found is not None and target in (None, found.type):
        return found
    if target is None:
        return pa.array(values)
    spelt = _plain_within(target)
    return pa.array(values, spelt) if spelt == target else pa.array(values, spelt).cast(target)


def _array_of_one_kind(values: Sequence[Any]) -> pa.Array | None:
    """Integers, floats or texts, and None, as ``pa.array`` gives them; None for other values."""
    kinds = set(map(type, values))
    missing = np.array([value is None for value in values]) if NoneType in kinds else None
    kinds.discard(NoneType)
    try:
        if kinds == {str}:
            return array_of_texts(values)
        if kinds in ({int}, {float}):
            numbers = values if missing is None else [0 if value is None else value for value in values]
            return array_of_numbers(np.array(numbers, np.int64 if kinds == {int} else np.float64), missing)
    except (OverflowError, UnicodeEncodeError):
        pass
    return None


def _plain_within(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(data_type):
        return _plain_within(data_type.value_type)
    if pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_plain_within(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_type, data_type.item_field.with_type(_plain_within(data_type.item_type)))
    for is_kind, list_of in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_kind(data_type):
            return list_of(data_type.value_field.with_type(_plain_within(data_type.value_type)))
    return data_type


def rows_as_columns(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Dicts as a batch with the columns of a schema, null where a dict lacks one; raises as `values_as_array`."""
    columns = [values_as_array([row.get(field.name) for row in rows], field.type) for field in schema]
    if not columns:
        return pa.RecordBatch.from_pylist(list(rows), schema)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def python_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as dicts; times that Python has not (beyond the years 1 to 9999) are those of NumPy, in UTC."""
    columns = [python_values(column) for column in batch.columns]
    return [dict(zip(batch.schema.names, row)) for row in zip(*columns)] if columns else [{}] * batch.num_rows


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column, see `python_rows`."""
    try:
        values: list[Any] = column.to_pylist()
        return values
    except (OverflowError, ValueError):
        pass  # some time within
    known = column.is_valid().to_pylist()
    if pa.types.is_struct(column.type):
        fields = [python_values(column.field(k)) for k in range(column.type.num_fields)]
        rows = zip(*fields)
        return [dict(zip(column.type.names, row)) if valid else None for row, valid in zip(rows, known)]
    if pa.types.is_dictionary(column.type):
        return python_values(column.dictionary_decode())
    if pa.types.is_nested(column.type):
        return [python_values(value.values) if valid else None for value, valid in zip(column, known)]
    return [_python_value(value) if valid else None for value, valid in zip(column, known)]


def _python_value(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        unit: Any = "D" if pa.types.is_date32(value.type) else getattr(value.type, "unit", "ms")
        return (np.timedelta64 if pa.types.is_duration(value.type) else np.datetime64)(value.value, unit)
