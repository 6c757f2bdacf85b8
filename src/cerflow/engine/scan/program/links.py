"""Conditions on events before, as programs on columns: what registers hold came from events of the same run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cerflow.engine import layout as engine_layout
from cerflow.engine import opcodes
from cerflow.engine.scan import layout
from cerflow.engine.scan.program.emitting import ScannedColumns, code_of
from cerflow.engine.scan.program.trees import Trees
from cerflow.engine.tables.instructions import OPERATORS
from cerflow.engine.tables.moves import Move
from cerflow.engine.tables.transducer_tables import TransducerTables

#: A row of `ScanArrays.links` without its steps.
_Link = tuple[int, int, int, int]
#: A link, and how many events before is the event that has to fulfil it.
_Placed = tuple[_Link, int]
#: Where a slot of a state got its value: how many events before, from which column of events, and for which operators
#: a comparison with the slot implies one with that value.
_Origin = tuple[int, int, tuple[int, ...]]
#: A slot, or one with a collection and a field of the only row in that.
_Place = int | tuple[int, int]
_ALL = tuple(OPERATORS.values())
_UNKNOWN: _Origin = (0, -1, ())
#: The operators for which a comparison with a slot holds for the value it was last given, too, by how it was given.
_KEPT_FOR = {
    engine_layout.WRITE: _ALL,
    engine_layout.SAME: _ALL,
    engine_layout.LEAST: (engine_layout.LT, engine_layout.LE),
    engine_layout.GREATEST: (engine_layout.GT, engine_layout.GE),
}


def rows_of_move(tables: TransducerTables, number: int, first: int) -> list[list[int]]:
    """The atoms, copies or steps of a move, which begin where the column ``first`` of its transition says."""
    arrays = tables.arrays
    some = {engine_layout.T_ATOM: arrays.atoms, engine_layout.T_COPY: arrays.copies, engine_layout.T_STEP: arrays.steps}
    begin, end = arrays.transitions[number, first : first + 2]
    rows: list[list[int]] = some[first][begin:end].tolist()
    return rows


def levels_of(tables: TransducerTables) -> dict[int, int] | None:
    """How many events every run has read in each state, if that is one number."""
    initial = tables.transducer.initial
    levels = dict.fromkeys(initial, 0)
    pending = list(initial)
    leaving: dict[int, list[int]] = {}
    for move in tables.moves.rows:
        leaving.setdefault(move.transition.source, []).append(move.target)
    while pending:
        state = pending.pop()
        for target in leaving.get(state, ()):
            if target < 0:
                continue
            level = levels[state] + 1
            if levels.get(target, level) != level:
                return None
            if target not in levels:
                levels[target] = level
                pending.append(target)
    return levels if all(state in levels for state in leaving) else None


class Links:
    """The conditions of moves on events before.

    Of runs that wait they are not known, unless ``waiting`` says that events before are those of the run. If ``levels``
    says that the steps of moves are their levels, a condition that only reads events before is one of a step before.
    """

    def __init__(
        self,
        tables: TransducerTables,
        outputs: Sequence[Sequence[int]],
        to: ScannedColumns,
        *,
        waiting: bool = False,
        levels: bool = False,
    ) -> None:
        self._tables = tables
        self._waiting = waiting
        self._by_level = levels
        self._to = to
        self._outputs = {row[layout.O_PLACE]: row for row in outputs if row[layout.O_TO] == layout.TO_COLUMNS}
        self._origins = self._found()
        #: Columns that are computed before conditions are, each with its first and last instruction.
        self.computed: list[list[int]] = []
        keyed = any(row[layout.O_TO] == layout.TO_KEYS for row in outputs)
        self._trees = Trees(self._computed_column if levels else None, keyed=keyed)
        self._values = self._computed()
        self._programs: dict[tuple[tuple[int, int], ...], _Link] = {}
        #: The links of atoms, by the state in which they are tested; many moves have the same.
        self._known: dict[tuple[int, ...], list[_Placed | None]] = {}
        #: Why columns do not decide all conditions, if they do not.
        self.reason = "a condition that columns cannot decide"

    def rows(self, steps: Sequence[int]) -> tuple[list[list[int]], bool]:
        """Rows of `ScanArrays.links`, each with the steps that it is necessary for; whether no event needs more."""
        found: dict[_Link, int] = {}
        decided = True
        for step in sorted(set(steps)):
            own = [move for move, bit in zip(self._tables.moves.rows, steps) if bit == step]
            of_moves = [self._of_move(move) for move in own]
            common = set.intersection(*of_moves)
            decided = decided and None not in common.union(*of_moves) and all(links == common for links in of_moves)
            for placed in common:
                if placed is not None:
                    link, before = placed
                    found[link] = found.get(link, 0) | step >> before
        # Texts are compared last, and only where all else holds.
        order = sorted(found.items(), key=lambda item: (item[0][0] != engine_layout.PROGRAM, item))
        return [[*link[:3], mask, link[3]] for link, mask in order], decided

    def handed(self) -> list[list[int]]:
        """Rows of `ScanArrays.outputs`: values of an event that equal others of the next in every match, and these."""
        moves, initial = self._tables.moves.rows, self._tables.transducer.initial
        found = [set(self._equal(move)) for move in moves if move.transition.source not in initial]
        pairs = []
        for now, before in sorted(set.intersection(*found)) if found else ():
            rows = [list(self._outputs[column]) for column in (before, now) if column in self._outputs]
            forms = {row[layout.O_FORM] for row in rows}
            if len(rows) == 2 and len(forms) == 1 and forms <= {layout.AS_INT, layout.AS_FLOAT, layout.AS_TEXT}:
                pairs.append(rows)
        return [pair[side] for side in (0, 1) for pair in pairs]

    def _equal(self, move: Move) -> Iterator[tuple[int, int]]:
        """The columns of events that a move finds equal: of its event, and of the one before."""
        origins = self._origins[move.transition.source]
        for atom in rows_of_move(self._tables, move.number, engine_layout.T_ATOM):
            distance, column, operators = origins.get(atom[engine_layout.A_RIGHT], _UNKNOWN)
            if atom[engine_layout.A_OPERATOR] == engine_layout.EQ and distance == 1 and engine_layout.EQ in operators:
                yield atom[engine_layout.A_LEFT], column

    def within(self, bound: Sequence[int], last: int) -> list[list[int]]:
        """The links that hold if the first event, ``last`` events before, is in the window that ``bound`` measures."""
        size, column = bound[layout.O_SIZE], bound[layout.O_COLUMN]
        now, then = (opcodes.COLUMN, column), (opcodes.COLUMN, column | last << layout.COLUMN_BITS)
        shorter = [(opcodes.CONSTANT, self._constant(size)), (opcodes.COMPARE_I, engine_layout.LT)]
        operator, start, stop, distance = self._added([now, then, (opcodes.SUBTRACT_I, 0), *shorter])
        return [[operator, start, stop, 1 << last, distance]]

    def _found(self) -> list[dict[_Place, _Origin]]:
        """The origins of the slots of each state that are the same whichever moves led there."""
        tables = self._tables
        origins: list[dict[_Place, _Origin]] = [{} for _ in range(tables.transducer.states)]
        # A slot that is kept for longer is only followed where all matches have as many events.
        levels = levels_of(tables) or {}
        for state in sorted(range(len(origins)), key=lambda q: levels.get(q, 0)):
            entering = [move for move in tables.moves.rows if move.target == state]
            if tables.moves.loops[state] and not self._waiting:
                continue  # a run may wait here, for any number of events
            some = [self._after(move.number, origins[move.transition.source]) for move in entering]
            for slot, origin in some[0].items() if some else ():
                others = [own.get(slot, _UNKNOWN) for own in some]
                if all(other[:2] == origin[:2] for other in others):
                    origins[state][slot] = *origin[:2], min((other[2] for other in others), key=len)
        return origins

    def _after(self, number: int, before: Mapping[_Place, _Origin]) -> dict[_Place, _Origin]:
        """The origins of slots behind a move, given those before it."""
        steps = rows_of_move(self._tables, number, engine_layout.T_STEP)
        slots = [step[engine_layout.S_SLOT] for step in steps]
        # With a bound a value is forgotten at some time.
        copies = rows_of_move(self._tables, number, engine_layout.T_COPY)
        copied = {source: slot for slot, source, bound in copies if bound < 0 and slot not in slots}
        found: dict[_Place, _Origin] = {}
        for place, (distance, column, operators) in before.items():
            slot = copied.get(place[0] if isinstance(place, tuple) else place)
            if slot is not None:
                found[(slot, place[1]) if isinstance(place, tuple) else slot] = distance + 1, column, operators
        for slot, step in zip(slots, steps):
            if step[engine_layout.S_OPERATION] == engine_layout.NEW_SET and slots.count(slot) == 1:
                found |= {(slot, field): (1, column, _ALL) for field, column in self._only_row(step)}
                continue
            operators = _KEPT_FOR.get(step[engine_layout.S_OPERATION], ())
            plain = step[engine_layout.S_SOURCE] == engine_layout.FROM_COLUMN and operators
            if plain and slots.count(slot) == 1:
                found[slot] = 1, step[engine_layout.S_INDEX], operators
        return found

    def _computed(self) -> list[dict[int, int]]:
        """The trees of slots of each state that hold what programs computed, the same whichever moves led there."""
        tables = self._tables
        values: list[dict[int, int]] = [{} for _ in range(tables.transducer.states)]
        steps = tables.arrays.steps
        written = steps[steps[:, engine_layout.S_OPERATION] == engine_layout.WRITE, engine_layout.S_SOURCE]
        levels = (levels_of(tables) or {}) if (written == engine_layout.FROM_PROGRAM).any() else {}
        for state in sorted(levels, key=lambda q: levels[q]):
            entering = [move for move in tables.moves.rows if move.target == state]
            if tables.moves.loops[state] and not self._waiting:
                continue
            some = [self._computed_by(move, values[move.transition.source]) for move in entering]
            for slot, tree in some[0].items() if some else ():
                if all(own.get(slot) == tree for own in some):
                    values[state][slot] = tree
        return values

    def _computed_by(self, move: Move, before: Mapping[int, int]) -> dict[int, int]:
        """The trees of slots behind a move, given those before it."""
        steps = rows_of_move(self._tables, move.number, engine_layout.T_STEP)
        slots = [step[engine_layout.S_SLOT] for step in steps]
        copies = rows_of_move(self._tables, move.number, engine_layout.T_COPY)
        found = {to: before.get(slot) for to, slot, bound in copies if bound < 0 and to not in slots}
        for slot, (operation, _, source, index, _, end) in zip(slots, steps):
            if operation == engine_layout.WRITE and slots.count(slot) == 1:
                if source == engine_layout.FROM_PROGRAM:
                    code = self._tables.arrays.code[index:end].tolist()
                    found[slot] = self._tree(code, self._origins[move.transition.source], before)
                elif source == engine_layout.FROM_SLOT:
                    found[slot] = before.get(index)
        return {slot: self._trees.before(tree, 1) for slot, tree in found.items() if tree is not None}

    def _only_row(self, step: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The fields of a new collection that has one row with values from event columns, each with its column."""
        arrays = self._tables.arrays
        first, last, begin, end = arrays.products[step[engine_layout.S_SOURCE]].tolist()
        fields = arrays.fields[step[engine_layout.S_INDEX] : step[engine_layout.S_FIELDS_END]].tolist()
        # Rows of other collections or a condition may make it more rows or none, and a bound forgets them.
        if (first, begin) == (last, end) and all(field[-1] < 0 for field in fields):
            for number, (source, column, *_) in enumerate(fields):
                if source == engine_layout.FROM_COLUMN:
                    yield number, column

    def _of_move(self, move: Move) -> set[_Placed | None]:
        """The conditions that are necessary for a move; None among them says that they do not suffice."""
        source = move.transition.source
        origins, values = self._origins[source], self._values[source]
        atoms = rows_of_move(self._tables, move.number, engine_layout.T_ATOM)
        found: set[_Placed | None] = set()
        for atom in atoms:
            key = (source, *atom)
            if key not in self._known:
                self._known[key] = [*self._links(atom, origins, values)]
            found.update(self._known[key])
        compared = [atom[engine_layout.A_RIGHT] for atom in atoms if atom[engine_layout.A_OPERATOR] in _ALL]
        known = all(slot in values or origins.get(slot, _UNKNOWN)[2] is _ALL for slot in compared)
        return found if known else found | {None}

    def _links(
        self, atom: Sequence[int], origins: Mapping[_Place, _Origin], values: Mapping[int, int]
    ) -> Iterator[_Placed | None]:
        operator, kind, left, right, first, end = atom
        if operator == engine_layout.PROGRAM:
            sets = self._tables.arrays.ranges[first:end, 0].tolist()
            code = self._tables.arrays.code[left:right].tolist()
            computed = any(opcode == opcodes.SLOT and argument in values for opcode, argument in code)
            yield from self._placed(self._tree(code, origins, values, sets), computed)
            return
        distance, column, operators = origins.get(right, _UNKNOWN)
        now, other = self._outputs.get(left), self._outputs.get(column)
        if now is not None and other is not None and operator in operators and kind != engine_layout.RANK:
            forms, columns = {now[layout.O_FORM], other[layout.O_FORM]}, (now[layout.O_COLUMN], other[layout.O_COLUMN])
            if forms == {layout.AS_TEXT}:
                # Entries of two columns have nothing in common, and passes compare no other texts.
                own = columns[0] == columns[1] or ((self._waiting or self._by_level) and self._to.are_plain(columns))
                equal = operator in (engine_layout.EQ, engine_layout.NE) and own
                yield ((operator, *columns, distance), 0) if equal else None
                return
        plain = operator in operators
        before = self._column(column, distance) if plain else values.get(right)
        one, compared = self._column(left, 0), opcodes.COMPARE_F if kind == engine_layout.FLOAT else opcodes.COMPARE_I
        if one is None or before is None or kind == engine_layout.RANK:
            yield None
        else:
            yield from self._placed(self._trees.node(compared, operator, one, before), not plain)

    def _placed(self, tree: int | None, computed: bool) -> Iterator[_Placed | None]:
        """The links of a condition; one that reads what was ``computed`` may be too long."""
        if tree is None:
            yield None
            return
        for condition in self._trees.conditions(tree):
            size, most = self._trees.instructions(condition)
            if size <= most or not computed:
                own, before = self._trees.at_latest_event(condition) if self._by_level else (condition, 0)
                yield self._added(self._trees.code(own, self._constant)), before
            else:
                self.reason = f"an aggregate of more than {most} instructions"
                yield None

    def _tree(
        self,
        code: Iterable[Sequence[int]],
        origins: Mapping[_Place, _Origin],
        values: Mapping[int, int],
        sets: Sequence[int] = (),
    ) -> int | None:
        """The tree of a program, with what slots and the only rows of collections hold in their place."""
        if any((slot, 0) not in origins for slot in sets):
            return None
        constants = self._tables.arrays.constants

        def leaf(opcode: int, argument: int) -> int | None:
            if opcode == opcodes.COLUMN:
                return self._column(argument, 0)
            if opcode == opcodes.CONSTANT:
                return self._trees.node(opcode, int(constants[argument]))
            of_set = opcode == opcodes.SET_FIELD
            place = (sets[argument >> 16], argument & 0xFFFF) if of_set else argument
            distance, column, operators = origins.get(place, _UNKNOWN)
            if operators is _ALL:
                return self._column(column, distance)
            return None if of_set else values.get(argument)

        return self._trees.of_code(code, leaf)

    def _constant(self, word: int) -> int:
        constants = self._to.constants
        if word not in constants:
            constants.append(word)
        return constants.index(word)

    def _added(self, code: Sequence[tuple[int, int]]) -> _Link:
        key = tuple(code)
        if key not in self._programs:
            start = len(self._to.code)
            self._to.code.extend(map(list, code))
            before = max((a >> layout.COLUMN_BITS for opcode, a in code if opcode == opcodes.COLUMN), default=0)
            self._programs[key] = engine_layout.PROGRAM, start, start + len(code), before
        return self._programs[key]

    def _computed_column(self, code: Sequence[tuple[int, int]]) -> int:
        start = len(self._to.code)
        self._to.code.extend(map(list, code))
        column = self._to.computed()
        self.computed.append([column, start, start + len(code)])
        return column

    def _column(self, column: int, distance: int) -> int | None:
        """The tree of a column of events, read of the event this far before; None if no program can read it."""
        output = self._outputs.get(column)
        if output is None or output[layout.O_FORM] not in (layout.AS_INT, layout.AS_FLOAT):
            return None

        def leaf(opcode: int, argument: int) -> int | None:
            if opcode == opcodes.CONSTANT:
                return self._trees.node(opcode, self._to.constants[argument])
            plain = argument >> layout.COLUMN_BITS == 0 and self._to.rows[argument][layout.C_LAYOUT] != layout.TRUTH
            return self._trees.node(opcode, argument | distance << layout.COLUMN_BITS) if plain else None

        return self._trees.of_code(code_of(output, self._to.code), leaf)
