"""The arrays that the kernels of the scan read, and the numbers that stand for things in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerflow.base.array_types import Bytes, IntRows, Ints, SmallRows, Smalls

# How the values of a column lie in memory; those before BOOLEAN can be the indices of a dictionary
(
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    DECIMAL,  # of 128 bits, of which the lower half is the value
    TEXT32,  # texts with offsets of 32 bits
    TEXT64,
    TEXT_VIEW,  # views of 16 bytes: the length, and the text if it has at most 12 bytes, or else where it is
    POSITION,  # no column: the positions of events
    TRUTH,  # no column: what a condition on one column of text says
    COMPUTED,  # no column: what a program has computed, as words
) = range(18)

# ScanArrays.control
(
    FIRST,  # the position of row 0
    ROW,  # the next row
    COUNT,  # events found so far
    FIXES,  # entries of `fixes`
    NODE,  # what is not known: the outcome of a node, or the class of a text of column TEXT
    OUTCOME,
    TEXT,
    PROGRAMS,  # the address of the kernel that runs programs
    KEYED,  # entries of `outputs` that are keys
    ROOT,  # where asking begins: a node, or what it leads to
    LATEST,  # the time of the last row that was checked
    NARROWS,  # whether relevant rows are candidates first, and written when all are known: where rows are chosen
    CANDIDATES,  # rows that are candidates
    WRITTEN,  # the first of them that is not written yet
    MARKS,  # whether the guards of rows are asked for before anything else: no, yes, or they decide
    OPEN,  # whether anything else has to be asked of the rows of a stretch
    GROUPS,  # keys in `members` so far
    FOLLOWS,  # whether events are left out that do nothing to the states that may be occupied
    OCCUPIED,  # these, as bits
    LOOKED_AHEAD,  # whether `guards` has the guards of all rows of the batch already
    RELEVANT,  # rows for which a guard may hold, about, as far as the kernel `flow` has counted them
    KEPT,  # those of them that are left, or all rows of the batch if these were most
    COUNTS,  # whether runs are counted beside that
    OPENED,  # the states that runs enter, as bits
    BEGUN,  # the first event before which no run is in any of these, -1: unknown
    ENDED,  # the last such event (or that behind the last one)
    FOUND,  # the matches that events from BEGUN up to ENDED detect, or those in `hits`
    LIMIT,  # for `flow`: the bound of the last match that is known to end behind a row
    PASSED,  # whether all rows before lie at or before this
    LEAD,  # the column of text to ask first
    BACKWARDS,  # what `flow` does
    FORWARDS,
    EDGE,  # the limit at the end of the batch
    OVERLAP,  # the rows at its end whose windows go on behind it
    TURN,  # the measure up to which the keys in the second half of `entered` do not count
    TURNED,  # the row where that was set
    UNJUDGED,  # whether a program has asked about a text of column TEXT that is not known yet: its class, or no room
    SLOTS,  # the rows of `flows` that `flow` uses, a power of two
    LISTED,  # where `listed` begins, which is written downwards
    SETTLED,  # the first row whose window goes on behind that where `flow` began backwards, if these tell too little
    SAMPLED,  # RELEVANT and KEPT where the rows before that begin, which tell whether to go on (-1: not there yet)
    SAMPLE_KEPT,
    RESTS,  # where to go on (one more row than there are: it has not rested)
    PAUSE,  # the rows for which to rest next time
    OPENINGS,  # rows that matches wait in
    WITHIN,  # how many events of a key a match that is joined may span (0: `reach` bounds it)
    WALKED,  # how far back `partners` has the rows of keys before the chosen ones; -1: it has those of pairs
    SORTED,  # whether rows are numbered in the order of their keys
) = range(48)
CONTROLS = 48
#: In MARKS.
NOT_MARKED, MARKED, DECIDED = range(3)

# Columns of ScanArrays.columns: the number of the column in the batch, how its values lie, what they are multiplied by
# (or divided by, if negative, and decimals; the text column of a truth), whether they are wanted as floats, which
# condition they are the results of (1 + its number, else 0); for the batch at hand where values and validity are, and
# their first row
C_CHILD, C_LAYOUT, C_FACTOR, C_FLOAT, C_CONDITION, C_DATA, C_VALID, C_OFFSET = range(8)
COLUMN_WORDS = 8

# Columns of ScanArrays.texts, the columns of text. A text is an entry: 0 is null, in a dictionary it is 1 + its index,
# else its number in a hash table.
(
    T_CHILD,
    T_LAYOUT,  # of texts, or of the indices of a dictionary
    T_DATA,  # as in columns
    T_VALID,
    T_OFFSET,
    T_BYTES,  # the bytes of texts, and their number; of views the addresses of buffers
    T_SIZE,
    T_CLASSES,  # by entry: its class (int64), -1 unless known
    T_CODES,  # by entry: its code among the strings of the recogniser, -1 unless known
    T_TRUTHS,  # by class: the truth values of conditions, and their number per class
    T_WIDTH,
    T_SLOTS,  # the hash table: S_… words for each slot, and a mask for slots
    T_MASK,
    T_ENTRIES,  # by entry: where its bytes begin among those that are kept, and the row where it appeared
    T_COUNT,  # entries so far
    T_ROOM,
    T_KEPT,  # the bytes of texts that are kept, the number used, the capacity
    T_USED,
    T_LIMIT,
    T_GUARDS,  # by entry: the guards that its text leaves possible, as a byte (0: no guard depends on the column)
    T_JUDGED,  # entries whose classes are known
    T_SINGLES,  # the number of texts that leave other guards possible than most (-1: unknown, or too many)
    T_SINGLED,  # each as ST_… words; full fours
    T_OTHERS,  # the guards that all other texts leave possible, not null
    T_OPEN,  # the guards that any text leaves possible, or null
    T_LENGTHS,  # how many bytes texts have with which a match may end, as bits (the last for all longer ones); -1: any
    T_ASKED,  # rows whose texts were entered before new ones were judged
    T_ASIDE,  # where texts hardly repeat: the address of bytes for `SET_ASIDE` rows, which become their guards; else 0
    T_WAITING,  # the number of rows of which it has the guards that other tests left, until Python judges their texts
    T_FROM,  # the first row, and the one behind the last, whose guards it has
    T_TO,
    T_HELD,  # where the dictionary is that the entries come from: length, first row, and its three buffers
) = range(32)
HELD_WORDS = 5
TEXT_WORDS = T_HELD + HELD_WORDS
#: Texts that are compared one by one with whole columns.
SINGLES = 8
# Words of one of these: an index of the dictionary or the key of a text, the guards; where the text is, and its length
ST_KEY, ST_GUARDS, ST_BYTES, ST_LENGTH = range(4)
SINGLE_WORDS = 4
#: The keys of shorter texts are their bytes, highest last, and their length. Others have this number in place of the
#: length, and a hash by the numbers that follow: of the first and last eight bytes and the length. No text has key 0.
SHORT = 8
MIX, MORE = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
# Words of a slot: the bytes of a text of at most eight, or its hash; the length, the entry (0: free)
S_WORD, S_LENGTH, S_ENTRY = range(3)
SLOT_WORDS = 3

# Columns of ScanArrays.nodes: what is asked, a column of text by its number, or one test or several tests; which test,
# or where these begin; where the answers begin in `next`, and how many there are (of several tests: how many these are)
N_ASKS, N_WHAT, N_NEXT, N_WIDTH = range(4)
NODE_WORDS = 4
ASK_TEST, ASK_TESTS = -1, -2
# Where an answer leads: to a node, to what is not known yet, to nothing, or to a signature
UNKNOWN, IRRELEVANT, SIGNATURE = -1, -2, -3

# Columns of ScanArrays.outcomes, a hash table: node and outcome of several tests, where they lead (UNKNOWN: free)
H_NODE, H_OUTCOME, H_NEXT = range(3)

# Columns of ScanArrays.tests: what is done, a comparison or whether it is null, a column or the first instruction,
# the other side as bits or the last instruction
K_KIND, K_OPERATOR, K_WHAT, K_OTHER = range(4)
COMPARE_INT, COMPARE_FLOAT, NULL_INT, NULL_FLOAT, RUN = range(5)
# Where all rows are checked: whether a value is there, has at most that magnitude, is a time not before the one above,
# is null wherever its entry in the dictionary is
IS_KNOWN, IS_WITHIN, IS_LATER, IS_LATER_FLOAT, IS_PLAIN = range(5)

# Columns of ScanArrays.outputs: where a value goes, in which column, the form, a column (or -1, first and last
# instruction), what a bound is less
O_TO, O_PLACE, O_FORM, O_COLUMN, O_CODE, O_CODE_END, O_SIZE = range(7)
TO_KEYS, TO_COLUMNS, TO_MEASURE, TO_BOUND = range(4)
AS_INT, AS_FLOAT, AS_TEXT, AS_NULL, AS_ORDER, AS_BOUND, AS_FLOAT_BOUND = range(7)

# Columns of ScanArrays.fixes: a column of text, an entry, the column of events, the event
X_TEXT, X_ENTRY, X_PLACE, X_EVENT = range(4)

# Columns of ScanArrays.candidates, the relevant ones among the chosen rows: row, signature, and how many events of the
# key are left out directly before it, or only whether any is
B_ROW, B_SIGNATURE, B_LEFT_OUT = range(3)
CANDIDATE_WORDS = 3
# Columns of ScanArrays.groups, by entry of the key: the last row of it so far (-1: none), the steps of a match that it
# may be, and how many rows there are so far
G_ROW, G_STEPS, G_ROWS = range(3)
GROUP_WORDS = 3
# What it matters of events of a key that are left out: nothing, whether there are any directly before one, how many
NEITHER, WHETHER, HOW_MANY = range(3)
# Keys of patterns without gaps that are not one column of text: there are none, or a hash table gives them numbers
NO_KEYS, HASHED_KEYS = -1, -2
# Columns of ScanArrays.links, conditions on events before: PROGRAM, and its first and last instruction; or EQ or NE of
# two texts, and their columns, mostly one; the steps of a match that it is necessary for, as bits, and how many events
# before the other one is
L_OPERATOR, L_READ, L_STOP, L_MASK, L_DISTANCE = range(5)
LINK_WORDS = 5
#: In programs the number of a column has this many bits; those above say how many events before the value is.
COLUMN_BITS = 16

# Columns of ScanArrays.effects, by signature: the states where such an event does anything, those that it empties, and
# its moves in `moves`. If it has one move, and empties no other state than that where it begins: this state (else -1),
# where runs go in `runs`, the state that they enter as a bit, and a mask for the number of runs that stay (all or none)
E_MATTERS, E_LEAVES, E_LEAD, E_LEAD_END, E_SOURCE, E_TARGET, E_ENTERS, E_STAYING = range(8)
EFFECT_WORDS = 8
# Columns of ScanArrays.moves and ScanArrays.leads: from a state, to a state (-1: no run goes on), whether it may end a
# match; leads number states as places do (-1: none), and have whether runs begin there, and where their steps are
LEADS_SOURCE, LEADS_TARGET, LEADS_FINAL, LEADS_BEGINS, LEADS_STEP, LEADS_STEP_END = range(6)
LEAD_WORDS = 6
# Columns of ScanArrays.lead_steps: what is done, a cell, and what with. A cell of the source must be beyond a limit; a
# cell of the target gets a value, or what a cell of the source has (-1: anything); only forwards; a cell of the source
# may be anything
STEP_DOES, STEP_CELL, STEP_WITH = range(3)
STEP_WORDS = 3
CHECKS, WRITES, COPIES, CARRIES, FREES = range(5)
# Columns of ScanArrays.cells: the numbers in `values` of the limit behind the batch, and of the value of runs that
# began before it (-1: any run may do there); then the number of the state. The first cells, one for each state, are for
# starts
CELL_EDGE, CELL_BEFORE, CELL_STATE = range(3)
CELL_WORDS = 3
# Columns of ScanArrays.places, by state: whether an event may end the waiting of its runs; a cell and its limit where
# runs have met their deadline, and where they may wait for it (-1: no deadline)
PLACE_WAITS, PLACE_MET, PLACE_MET_LIMIT, PLACE_OPEN, PLACE_OPEN_LIMIT = range(5)
PLACE_WORDS = 5
# Columns of ScanArrays.values: as in outputs, then how it is read: turned around if less is more; as what runs have, or
# as a limit that they must be beyond, or at; and where its words are, if they are those of a column (else 0)
VALUE_TURN, VALUE_DATA = 7, 8
VALUE_WORDS = 9
TURNED_AROUND, A_LIMIT, INCLUSIVE = 1, 2, 4
#: What runs have at most where no value is, which is beyond no limit of a check.
NOTHING = -(2**63) + 2
#: Cells of a key.
CELLS = 24
# Columns of ScanArrays.runs: how many there are, and how many an event adds
RUNS, ADDED = range(2)
RUNS_WORDS = 2
#: Two such numbers have a sum of less than 64 bits.
COUNTABLE = 2**61
# Columns of ScanArrays.decided: a test that texts do not decide, the guards that it leaves possible where it holds and
# where it does not
D_TEST, D_HELD, D_FAILED = range(3)

# Answers of the scan: all rows are read; where an outcome leads is unknown, the class of a text, there is no room
# for a text, none for fixes, none for events
SCANNED, NO_OUTCOME, NO_CLASS, NO_ROOM, NO_FIXES, NO_EVENTS = range(6)


#: The bytes of a text that has room in its view.
IN_VIEW = 12
#: Rows that are asked together for their texts.
STRETCH = 1024
#: Rows whose texts are entered before new ones are judged.
COLLECTED = 1 << 15
#: Rows whose texts are judged together where these hardly repeat.
SET_ASIDE = 1 << 17
#: Rows whose guards are asked for together, so few that they stay in the cache next to the processor.
BLOCK = 4096
#: Bytes of the rows before a block that stay beside it, more than a match of consecutive rows has.
CARRIED = 64
#: Guards that have bits of their own.
GUARDS = 8
#: Moves that have bits of their own, and the bit of events that may end the waiting of runs.
MOVES = 7
WAITS = 1 << MOVES


class ScanArrays(NamedTuple):
    """The parts of events that a scan reads, and those that it does not know yet."""

    control: Ints
    columns: IntRows  # (columns, COLUMN_WORDS)
    texts: IntRows  # (columns of text, TEXT_WORDS)
    nodes: IntRows  # (nodes, 4)
    next: Ints  # answers of all nodes
    outcomes: IntRows  # (slots, 3)
    together: Ints  # tests that are asked together
    tests: IntRows  # (tests, 4)
    outputs: IntRows  # (outputs, 7), keys first, the alternatives of a key one after another
    code: SmallRows  # (instructions, 2)
    constants: Ints
    stack: Ints
    fixes: IntRows  # (room, 4): events whose text has no code yet
    chosen: Ints  # (STRETCH,) the rows that may be relevant
    at: Ints  # (STRETCH,) and where the answers so far have led
    measures: Ints  # (STRETCH,) and what the window measures for them
    listed: Ints  # rows that had guards, above them the hashes of their keys
    list_measures: Ints  # what the window measures for them
    list_begins: Ints  # by stretch of rows: where it begins in `listed`
    candidates: SmallRows  # (chosen rows, CANDIDATE_WORDS)
    groups: SmallRows  # (entries of the key, GROUP_WORDS)
    members: IntRows  # (keys, words): the keys of groups, the first one is under construction
    slots: Smalls  # hash table of members, 0: free
    links: IntRows  # (comparisons, LINK_WORDS)
    key_steps: Ints  # by entry of the key: the steps of a match without gaps that the last row may be, as bits
    admits: Ints  # (256,) by the guards that may hold: which steps of a match an event may be, as bits
    before: Smalls  # by row: the row of the event directly before it, in its partition; -1: none in this batch
    numbers: Ints  # (STRETCH,) by row: the number of its key, 0: none
    allowed: Ints  # (STRETCH,) by row: its steps, as bits
    rows: Ints  # (STRETCH,) of which events a column is read
    partners: IntRows  # (steps, STRETCH): by how many events before, the other rows of chosen ones, of a match or a key
    opened: IntRows  # (room, 2): events that matches wait in: the hash of the key, below it the one before; the measure
    partials: SmallRows  # (room, 2): the first event in `opened`, of a match its row; what it extends, or its last row
    join_guards: Ints  # (steps,) by step of a match that is joined, the guards of which one must hold
    join_keys: IntRows  # (2n, 7): as rows of outputs, n values of an event, and the equal ones of the next event
    looked_up: Ints  # by event in `opened`, if there are `join_keys`: the hash that it looks up, below it what is there
    join_kills: Ints  # (steps - 1,) those that no event may have between that of a step and the next one
    ordinals: Ints  # by row, for WITHIN: the number of its key, below it how many events of it are before; -1: no key
    key_of: Ints  # by row: the number of its key, and in the lowest byte its guards
    order: Smalls  # the rows in the order of their keys
    sorting: IntRows  # (columns, 2): those that conditions read of rows in this order, and which columns they are
    sorted: IntRows  # (columns, rows): their words
    sorted_guards: Bytes  # CARRIED bytes, and then the guards of these rows
    wide: IntRows  # (values at once, STRETCH): the stack of programs on many rows
    computing: IntRows  # (columns, 3): those that are computed, each with its first and last instruction
    computed: IntRows  # (columns, rows): their words
    kept: IntRows  # (values, STRETCH): what they keep
    guards: Bytes  # by row: the guards that may hold for it
    led: Ints  # by the guards that may hold, where these lead (`DECIDED`); or UNKNOWN
    effects: IntRows  # (signatures, EFFECT_WORDS)
    moves: IntRows  # (moves, 3), by signature
    runs: IntRows  # (states + 1, RUNS_WORDS), by state, and the matches that events from BEGUN on detect
    ends: Bytes  # (BLOCK,) by row of a block: whether a match of consecutive rows ends there
    hits: Bytes  # the same for a batch, eight rows in a byte, lowest first
    kinds: Bytes  # by row: its guards, if the labels of a match of consecutive events depend on them; else nothing
    step_guards: Ints  # by step of such a match, the guards of which one must hold; or for `flow` those of last events
    reach: IntRows  # (2, 7): as rows of outputs, what the window of all matches measures, and the bound that it sets
    leads: IntRows  # (moves, LEAD_WORDS), by their bits
    lead_steps: IntRows  # (steps, STEP_WORDS)
    bit_leads: Ints  # (MOVES + 1,) into leads
    masks: Bytes  # (256,) by the guards that may hold, the bits of the moves that they allow, and WAITS
    kills: Ints  # (256,) by the guards that hold: the states, by number in `places`, that lose all their runs
    places: IntRows  # (states, PLACE_WORDS)
    cells: IntRows  # (cells, CELL_WORDS)
    values: IntRows  # (values, VALUE_WORDS)
    edges: Ints  # (cells,) the limits at an end of the batch, of keys of which nothing is known yet
    limits: Ints  # (steps of a lead,): the limits of its checks
    useful: Bytes  # by row: those of its bits that may matter
    keyed: IntRows  # (outputs, 7): as rows of outputs, on which all events of a match agree
    flows: IntRows  # (keys, cells): see the kernel `flow`; keys may share a row
    slot_of: Smalls  # by row: the number of its key; or what B_LEFT_OUT will be, if it is chosen
    entered: Ints  # (2 * (keys / 64 + 1),): which rows of flows have values, as bits: those set lately, then others
    decided: IntRows  # (tests, 3)


def int_rows(values: object, width: int) -> IntRows:
    """Numbers as rows of this width; there may be none."""
    return np.array(values, np.int64).reshape(-1, width)
