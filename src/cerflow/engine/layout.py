"""The arrays that kernels share, and the numbers that stand for things in them."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from cerflow.base.array_types import IntRows, Ints, SmallRows, Smalls
from cerflow.engine.declared_arrays import Array, Ref

#: Null in an int64 column or register; in float64 it is NaN.
NULL = -(2**63)
#: A window register whose window has passed.
EXPIRED = -(2**63) + 1
#: The measure of a complex event that has not begun: it never leaves a window.
NOT_BEGUN = 2**63 - 1
#: The bound of queries without a window: every start is beyond it.
NO_BOUND = -(2**63) + 1
#: The position of detections at the first moment beside events; those at moment number k have this position minus k.
FIRST_MOMENT = -2

#: The number of states that get bits of their own in one word.
STATE_BITS = 62

# Columns of TableArrays.transitions
T_SOURCE, T_TARGET, T_LABEL, T_FINAL, T_ATOM, T_ATOM_END, T_COPY, T_COPY_END, T_STEP, T_STEP_END = range(10)

# Columns of TableArrays.atoms: operator, kind, event column or first instruction, slot or end, collections
A_OPERATOR, A_KIND, A_LEFT, A_RIGHT, A_RANGE, A_RANGE_END = range(6)
# operators 0-5 compare a column with a slot
LT, LE, EQ, NE, GE, GT, PROGRAM = range(7)
# kinds of values
INT, FLOAT, RANK = range(3)

# Columns of TableArrays.indexes, one row for each state: how configurations are found, by which slot, whether that is a
# float, the column of State.tops
X_KIND, X_SLOT, X_FLOAT, X_NUMBER = range(4)
SCAN, EQUAL, ORDERED = range(3)

# Columns of TableArrays.code: see `cerflow.engine.opcodes`
CODE_OPCODE, CODE_ARGUMENT = range(2)

# Columns of TableArrays.ranges: a slot with the number of a collection, the words of each of its rows
RANGE_SLOT, RANGE_WIDTH = range(2)

# Columns of TableArrays.expiring: a slot that expires when it is at or below an event column, the column, whether that
# holds for all partitions
EXPIRING_SLOT, EXPIRING_BOUND, EXPIRING_GLOBAL = range(3)

# Columns of TableArrays.local: an event column that holds the position in the substream, less a constant
LOCAL_COLUMN, LOCAL_LESS = range(2)

# Columns of TableArrays.signature_rows: a state, the range of signature_transitions that an event of the signature may
# fire there, what stays in the state, the event columns with the least and the greatest value by which the index of the
# state finds configurations (or -1), whether one configuration that can go on from there is enough
ROW_STATE, ROW_FIRST, ROW_END, ROW_LEAVES, ROW_LEAST, ROW_GREATEST, ROW_ENOUGH = range(7)
# In ROW_LEAVES: whether all configurations stay, all leave, or those leave that fired a transition
STAYS, LEAVES, LEAVES_FIRED = range(3)

# The questions to a program: whether an atom holds, the value of a step, or a collection with more rows
TEST, VALUE, ROWS = range(3)

# Steps of a transition, applied to the registers of the target: operation, slot, source kind, source, fields
S_OPERATION, S_SLOT, S_SOURCE, S_INDEX, S_KIND, S_FIELDS_END = range(6)
WRITE, LEAST, GREATEST, SAME, NEW_SET, ADD_ROW = range(6)
# The source of a value: an event column, a register slot before the transition, or a program (whose last instruction
# stands in S_FIELDS_END, and for a field of a row in the third column)
FROM_COLUMN, FROM_SLOT, FROM_PROGRAM = range(3)

# Columns of TableArrays.fields, for each field of a row that is added to a collection: the source of its value
# (FROM_…), an index or the first instruction, the end of the instructions, how it compares with that of other rows, and
# the column with the bound of a window that starts there and has to be met, or -1. For the slots of a state (`better`)
# only FIELD_COMPARES counts
FIELD_SOURCE, FIELD_INDEX, FIELD_END, FIELD_COMPARES, FIELD_BOUND = range(5)

# In FIELD_COMPARES: how a field compares with that of a row which its own row makes unnecessary: equal, not less, not
# greater (for integers and floats; null is the worst), or anything
SAME_BITS, LEAST_INT, GREATEST_INT, LEAST_FLOAT, GREATEST_FLOAT, ANYTHING = range(6)

# Columns of TableArrays.products, for a step that adds rows and reads other collections: the first and last of their
# ranges, and of the instructions of a condition on their rows. The step has the number of its product as its source
Q_RANGE, Q_RANGE_END, Q_FILTER, Q_FILTER_END = range(4)

# Columns of TableArrays.copies: slot of the target, slot of the source, bound column of a window register or -1
P_TARGET, P_SOURCE, P_BOUND = range(3)

# Columns of Scratch.updates and Scratch.results
U_STATE, U_LABEL, U_ROOT, U_FINAL, U_MEMBER, U_COUNT = range(6)
# Scratch.updates has two more: the class that the update comes from (later: its own), and with a strategy where it
# goes: a configuration, -1 for a new one, or -2 - u for that of the earlier update u
U_CLASS, U_PLACE = 6, 7
UPDATE_COLUMNS = 8
#: In U_STATE: nothing goes on from here; a set of several members goes on.
NOWHERE, SEVERAL = -1, -2

# Columns of State.partition (int32)
R_CHAIN, R_LIVE, R_MOVED, R_WORST, R_BEST = range(5)
PARTITION_COLUMNS = 5

# Columns of State.config (int32)
(
    C_GROUP,
    C_PARTITION,
    C_ROOT,
    C_NEXT,
    C_PREVIOUS,
    C_CHAIN,
    C_MEMBER,
    C_COUNT,
    C_DEAD,
    C_CLASS,
    C_LEFT,  # in a tree what is below, in a chain the neighbours
    C_RIGHT,
    C_HIGHER,
) = range(13)
CONFIG_COLUMNS = 13
# Columns of State.config_long (int64)
L_LAST, L_HASH, L_KEY, L_START, L_BORN = range(5)
CONFIG_LONG_COLUMNS = 5

# Columns of State.partition_long (int64); the words of the key are followed by the latest checked values, with O_FORGET
# by the moment of the last event, and by the latest bound
PARTITION_EVENTS, PARTITION_KEY = range(2)

# Columns of State.set_index: the first word of a collection in set_words, the number of its words, its hash
SET_BEGIN, SET_SIZE, SET_HASH = range(3)

# Columns of State.classes: the next worse and better class of the partition (0: none; the latter chains free ones),
# the configurations that have it, a number in the order of the classes
K_WORSE, K_BETTER, K_HELD, K_NUMBER = range(4)
#: The class of the complex event without events: the worst of every partition, in none of their lists.
NO_EVENTS = 0

# State.counters
(
    N_NODES,  # nodes in the arena
    N_CONFIGS,  # configurations ever taken from the pool (high-water mark)
    N_FREE,  # length of the free list
    N_MEMBERS,  # rows of the member pool in use
    N_PARTITIONS,  # high-water mark of partition slots
    N_FREE_PARTITIONS,
    N_SETS,  # collections
    N_SET_WORDS,  # words of collections
    N_DETECTIONS,
    N_RANK,  # greatest rank of a node: bounds the cost of melding
    N_LIVE,  # configurations alive
    N_VISITED,  # configurations looked at (a measure of work)
    N_CLASSES,  # classes ever taken (high-water mark)
    N_FREE_CLASS,  # the first free class, or 0
    N_MARKS,  # marks of events
    N_TO_INDEX,  # 1 + a state that has many configurations and no index yet, or 0
    N_AGE,  # the greatest L_BORN of a configuration
) = range(17)
COUNTERS = 17

# Node records: an int64 word, the measure, then int32 words
W_MEASURE = 0
I_CHILD, I_LEFT, I_RIGHT, I_MARK, I_RANK, I_REST = 2, 3, 4, 5, 6, 7
NODE_WORDS = 4
# Nodes of lists (see `kernels.lists`) have more: start and value of the part, the latest start and the least value of
# the tree, the least value of the list (the measure is its latest start), and how heavy it is
W_START, W_VALUE, W_LATEST, W_BEST, W_LEAST = range(4, 9)
I_WEIGHT = 18
LIST_NODE_WORDS = 10
#: The node of the complex event without events.
BOTTOM = 0

# Columns of State.marks (int64): an event and the number of the label set that it is marked with
M_POSITION, M_LABEL = range(2)
#: The number of the empty mark.
NO_MARK = 0

# The results of `advance`
(
    DONE,
    FULL_SCRATCH,
    FULL_NODES,
    FULL_CONFIGS,
    FULL_MEMBERS,
    FULL_PARTITIONS,
    FULL_SETS,
    FULL_DETECTIONS,
    DECREASED,
    CALL_FAILED,  # the function of a predicate
    PAUSED,  # the work for a call is done, or another thread has stopped the kernel, maybe amid an event
) = range(11)

# Columns of State.detections (int64)
D_POSITION, D_BOUND, D_MARK, D_ROOT = range(4)


class TableArrays(NamedTuple):
    """A transducer as tables; those by signature grow as new signatures appear."""

    transitions: SmallRows  # (transitions, 10)
    atoms: SmallRows  # (atoms, 6)
    code: SmallRows  # (instructions, 2)
    constants: Ints  # literals of programs (floats by their bits)
    ranges: SmallRows  # (collections of atoms and products, 2)
    copies: SmallRows  # (copies, 3)
    steps: SmallRows  # (steps, 6)
    fields: SmallRows  # (row fields, 4)
    products: SmallRows  # (steps that add rows, 4)
    skips: Smalls  # (states,): 1 if events may be skipped there, all but those whose signature says otherwise
    slots: Smalls  # (states,): number of register slots
    telling: Smalls  # (states,): this many of them, the first, tell configurations apart; see `TransducerTables`
    better: (
        Smalls  # (states,): in fields, where those of the slots of a state begin that say which run is better, or -1
    )
    expiring: SmallRows  # (entries, 3), by state; see `TransducerTables`
    expiring_start: Smalls  # (states + 1,) into expiring
    initial: Smalls  # (states,): 1 if initial
    dominated: Smalls  # (states,): slot whose greatest value alone matters among runs of equal output, or -1
    indexes: SmallRows  # (states, 4)
    checked: Smalls  # columns that must never decrease in a substream
    local: SmallRows  # (columns, 2)
    signature_start: Smalls  # (signatures + 1,) into signature_rows
    signature_rows: SmallRows  # (rows, 6)
    signature_transitions: Smalls
    signature_state: SmallRows  # (signatures, states): row of signature_rows, or -1
    options: Ints  # see O_…
    failure: Ints  # the first call of a predicate that failed: 1 + its number, its arguments; else 0


(
    O_GROUPED,  # runs with equal outputs are determinised into sets
    O_CONSUME,  # 0 no, 1 everything, 2 in the partition
    O_PARTITIONED,
    O_COUNTED,  # positions in the substream are needed
    O_STATES,
    O_SLOTS,  # the greatest number of slots of a state
    O_KEY,  # words of a partition key
    O_LOCAL_WINDOW,  # size of a count window on the substream, or 0
    O_STRATEGY,  # see below
    O_WINDOWED,  # whether the query has a window
    O_MANY,  # configurations of a state from which on it has an index
    # addresses of kernels that only some queries need
    O_PROGRAMS,
    O_SETS,
    O_CHOOSE,
    O_SETTLE,
    O_LET_GO,
    O_DETECTING,  # only where there are matches is asked
    O_FORGET,  # whether substreams begin again after a pause
    O_PICK,  # what is picked in lists when the matches of an event are read, as O_STRATEGY: all are kept until then
    O_ENTER,
) = range(20)
OPTIONS = 20
#: In O_STRATEGY: report every match, or those of one support, which is the earliest or the latest choice of events.
EVERYTHING, EARLIEST, LATEST = range(3)
#: Besides these, MAX may pick the matches that are not part of others. Its sets are not lists.
LARGEST = 3


class EventArrays(NamedTuple):
    """The events of a batch that the kernel looks at."""

    signature: Annotated[Smalls, Array("events")]
    position: Annotated[Ints, Array("events")]  # number of the event in the stream
    measure: Annotated[Ints, Array("events")]  # what the window of the query measures
    bound: Annotated[Ints, Array("events", fill=NO_BOUND)]  # starts at or before this are outside the window now
    keys: Annotated[IntRows, Array("events", "key words")]
    columns: Annotated[IntRows, Array("events", "columns")]  # expressions, floats by their bits
    moment: Annotated[Ints, Array("events")]  # the time, if substreams begin again after a pause
    left_out: Annotated[Ints, Array("events")]  # this many events of its key come directly before it that are not here
    idle: Annotated[Ints, Array("events")]  # substreams whose last event was then or before begin again now
    ranks: Annotated[Ints, Array(1)]  # string code -> its place in the order of strings


def _older(column: int) -> Ref:
    return Ref(column, "nodes", "a node of the match graph points to no older one", -1, older=True)


_NODE_REFS = (
    *map(_older, (I_CHILD, I_LEFT, I_RIGHT, I_REST)),
    Ref(I_MARK, "marks", "a node has a mark that is not there"),
    # Heaps of fewer than 2⁶³ nodes do not have a higher rank.
    Ref(I_RANK, "ranks", "the ranks of nodes of the match graph are not those of a heap or tree", 1),
)
_MARK_REFS = (Ref(M_LABEL, "label sets", "a mark has a label set that the query does not have", 1),)
_CONFIG_REFS = (
    Ref(C_GROUP, "groups", "a configuration is in a state that the query does not have"),
    Ref(C_PARTITION, "partitions", "a configuration is of a partition that is not there"),
    Ref(C_ROOT, "nodes", "a configuration has a root that is not there"),
    Ref(C_CLASS, "classes", "a configuration has a class that is not there"),
)
_MEMBER_REFS = (Ref(0, "states", "a member is in a state that the query does not have"),)
_PARTITION_REFS = (Ref(R_MOVED, "truth values", "a partition has neither moved on nor stayed"),)
_KEPT_OF_CONFIG = (C_GROUP, C_PARTITION, C_ROOT, C_CLASS, C_COUNT)


class State(NamedTuple):
    """The memory of the engine between events. Kernels rely on the following, and check none of it.

    - Nodes point to older nodes or to none (-1), and to a mark that is there. A child leaves the window no earlier than
      the node, its neighbours in the heap no later. The rank is one more than that of the right neighbour, if there is
      one, so no way to the right is longer than the greatest rank, ``N_RANK``. Node 0 is `BOTTOM`.
    - Marks are in the order of their positions; the events of all but the first are kept.
    - A configuration that is in use has a root; it is in the list of its partition and group, which is its state, or
      one beyond all states for sets of two or more members, in one chain of ``table``, and in the index of its state,
      if that has one. Members of a set are sorted by state and registers, each once. ``L_START`` is the measure of the
      root (unless the query only detects; then the root is `BOTTOM`).
    - The classes of a partition are a list, in the order of their numbers; each is held by a configuration.
    - Slots of collections hold numbers of ``set_index``, whose words are whole rows; slots, keys and rows of strings
      hold codes of known strings or `NULL`. All other values may be anything.

    A snapshot keeps a part of this, which is checked when it is read (`cerflow.engine.state.validation`); the rest is
    computed again (kernel `restore_links`).
    """

    counters: Annotated[Ints, Array(COUNTERS)]
    # Each node stands after those that it points to.
    nodes: Annotated[IntRows, Array("nodes", "node words", N_NODES, shared=True, halves=True, refs=_NODE_REFS)]
    # They are in the order of the events; nodes and detections name them by number.
    marks: Annotated[IntRows, Array("nodes", 2, N_MARKS, shared=True, refs=_MARK_REFS)]
    config: Annotated[
        SmallRows, Array("configs", CONFIG_COLUMNS, N_CONFIGS, _KEPT_OF_CONFIG, "configs", refs=_CONFIG_REFS)
    ]
    # L_START is the latest start of its complex events.
    config_long: Annotated[IntRows, Array("configs", CONFIG_LONG_COLUMNS, N_CONFIGS, (L_LAST, L_START))]
    # The registers of configurations with one member.
    values: Annotated[IntRows, Array("configs", "slots", N_CONFIGS)]
    free: Annotated[Smalls, Array("configs")]
    # A hash table of configurations.
    table: Annotated[Smalls, Array("places of configs", fill=-1)]
    # The states of the members of larger configurations.
    members: Annotated[Smalls, Array("members", 1, N_MEMBERS, refs=_MEMBER_REFS)]
    member_values: Annotated[IntRows, Array("members", "slots", N_MEMBERS)]
    # The first configuration of each group.
    heads: Annotated[SmallRows, Array("partitions", "heads", fill=-1)]
    # The chain, live configurations (-1: free), whether the initial set has moved on, the list of classes.
    partition: Annotated[
        SmallRows, Array("partitions", PARTITION_COLUMNS, N_PARTITIONS, (R_MOVED,), "moved", refs=_PARTITION_REFS)
    ]
    partition_long: Annotated[IntRows, Array("partitions", "partition words", N_PARTITIONS, fill=NULL)]
    free_partitions: Annotated[Smalls, Array("partitions")]
    partition_table: Annotated[Smalls, Array("places of partitions", fill=-1)]
    # The first collection is empty.
    set_index: Annotated[IntRows, Array("sets", 3, N_SETS, (SET_SIZE,), "set_sizes")]
    set_words: Annotated[Ints, Array("words", 1, N_SET_WORDS)]
    set_table: Annotated[Smalls, Array("places of sets", fill=-1)]
    detections: Annotated[IntRows, Array("detections", 4)]
    # Configurations of states that may have an index, and whether they have it now.
    sizes: Annotated[Smalls, Array("states")]
    indexing: Annotated[Smalls, Array("states")]
    # A hash table of indexes, and trees; see `kernels.index`.
    index_table: Annotated[Smalls, Array("places in indexes", fill=-1)]
    tops: Annotated[SmallRows, Array("partitions", "trees", fill=-1)]
    # See `kernels.classes`.
    classes: Annotated[IntRows, Array("classes", 4)]


class Scratch(NamedTuple):
    """Room for what one event does before it is applied."""

    updates: Annotated[SmallRows, Array("updates", UPDATE_COLUMNS)]
    starts: Annotated[Ints, Array("updates")]  # the latest start of what each update goes on from
    update_values: Annotated[IntRows, Array("updates", "slots")]
    results: Annotated[SmallRows, Array("updates", 6)]
    result_values: Annotated[IntRows, Array("updates", "slots")]
    members: Annotated[Smalls, Array("members")]  # states of members of sets under construction
    member_values: Annotated[IntRows, Array("members", "slots")]
    removed: Annotated[Smalls, Array("updates")]  # configurations to drop
    candidates: Annotated[IntRows, Array("updates", 2)]  # L_BORN and number of the configurations that an index finds
    path: Annotated[Smalls, Array(256)]  # nodes along which a meld goes
    stack: Annotated[Ints, Array("stack")]  # values of a program
    odometer: Annotated[Ints, Array("odometer")]  # rows of collections
    row: Annotated[Ints, Array("fields")]  # a row under construction
    registers: Annotated[IntRows, Array(1, "slots")]  # those of the current member
    answers: Annotated[Ints, Array(3)]  # what a kernel called by its address answers besides its result


# Columns of Ranking.entries: rank of the class, an update or -1 - a configuration, start, cover, next spare entry
E_RANK, E_WHAT, E_START, E_COVER, E_SPARE = range(5)
# Columns of Ranking.covers: state, latest start of better classes than the current one, the rank of the current class
# and its latest start, where its configuration is (as U_PLACE), first entry of a configuration that may be overwritten
V_STATE, V_BETTER, V_RANK, V_START, V_PLACE, V_SPARE = range(6)


class Ranking(NamedTuple):
    """Room for what a strategy compares; see `kernels.choose`."""

    entries: Annotated[IntRows, Array("entries", 5)]
    order: Annotated[Smalls, Array("entries")]  # entries, from the best class to the worst
    covers: Annotated[IntRows, Array("entries", 6)]  # one for each member that the event brings
    cover_values: Annotated[IntRows, Array("entries", "slots")]
    cover_table: Annotated[Smalls, Array("places of covers", fill=-1)]  # a hash table of covers
