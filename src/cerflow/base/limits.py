"""Numbers that bound work, memory and text: one line each, with its unit and the consequence.

Modules read them as ``limits.NAME`` when they need them, so that one place changes them for all. Numbers that belong
to a format or to the arithmetic of kernels stand where they are used.
"""

# Refusals: beyond these, a query or a question is refused with an error

#: Characters of a query; longer texts are refused before they are parsed.
QUERY_CHARACTERS = 1_000_000
#: Parts of a query, without its literals; larger queries are refused.
QUERY_PARTS = 50_000
#: Event types and EVENTs in a formula; more are refused.
FORMULA_EVENTS = 5_000
#: Atoms of a conjunctive or disjunctive form; beyond, the rewriting is refused.
CLAUSE_ATOMS = 20_000
#: Cases into which the guards of one state divide an event; beyond, the query is refused.
GUARD_CASES = 4_000
#: Nodes of a rewritten formula; beyond, the rewriting is refused.
REWRITTEN_NODES = 50_000
#: Groups of events that agree on a key in one match, and ways in which matches have such groups; beyond, the stream is
#: not divided by that key.
AGREEING = 64
#: Operands of UNORDERED, whose orders are all written out; more are refused.
UNORDERED_OPERANDS = 6
#: States of an automaton under construction, and a tenth of its transitions; beyond, the query is refused.
CONSTRUCTED_STATES = 5_000
#: Cases times sets of runs that a construction prepares; beyond, the query is refused.
RUN_SET_WORK = 10_000
#: Atoms up to which a filter is brought into clauses; larger filters are taken apart as they are written.
FILTER_CLAUSE_ATOMS = 100
#: Nodes of the values after CASE, written out at each of its WHEN; larger ones are refused.
CASE_NODES = 1_000
#: Depth of CASE in conditions of CASE; deeper ones are refused.
CASE_DEPTH = 100
#: Configurations of a substream that are traced at once; beyond, the trace is refused.
TRACED_CONFIGURATIONS = 1_000
#: Parts of a query that `why_not` leaves out one by one; queries with more are refused.
WHY_NOT_PARTS = 100
#: Matches of one event among which `why_not` looks for the chosen one; further ones count as not reported.
LISTED_RIVALS = 100_000
#: Labels of one filter up to which bounds on their times are added up to see which follow from others.
TIMES_COMPARED = 12
#: The largest bound in ``φ{n,m}``.
REPETITIONS = 1_000_000
#: States up to which repetitions are written out; beyond, a register counts them.
REPEATED_STATES = 64
#: Copies of a formula, one for each choice in its filter; further choices are remembered.
FILTER_COPIES = 16
#: Conditions in choices that are remembered; more are refused.
FILTER_REMEMBERED = 100
#: Depth of nested choices about labels with several events; deeper ones are refused.
FILTER_DEPTH = 50
#: Combinations of kinds that attributes may have; beyond, a question is too large to decide.
EVENT_SPACES = 32
#: Steps of a decision or determinisation unless the caller gives a number; beyond, it is refused.
DECISION_STEPS = 2_000_000
#: Labels of a formula of which it is asked whether it has all complex events; more are refused.
UNIVERSAL_LABELS = 6
#: Steps of a decision that a question to the solver counts for.
SOLVER_STEPS = 5_000
#: Resources, as Z3 counts them, of one question to the solver; beyond, the answer is not known.
SOLVER_RESOURCES = 20_000_000
#: The same for a proof about runs of any length.
PROOF_RESOURCES = 50_000_000
#: Questions to the solver in search of a short stream, before a proof that there is none is tried.
SOLVER_FIRST_QUESTIONS = 40
#: States or minterms of a construction of the papers unless the caller gives a number; beyond, it is refused.
PAPER_STEPS = 200_000
#: Bytes of a row of CSV or a line of JSON; a file with a longer one is refused.
TEXT_ROW_BYTES = 1 << 26
#: Bytes of a JSON array, which is read as a whole; a longer one is refused.
JSON_ARRAY_BYTES = 1 << 30
#: States and transitions, or parts of a formula, of a picture; larger ones are refused, as nobody could read them.
DRAWN_PARTS = 300
#: The same; beyond, arrows are straight lines and fewer steps look for a good layout.
DRAWN_FINELY = 100
#: Characters of a picture of matches in a cell of a notebook; larger ones are left out, and the cell says so.
NOTEBOOK_PICTURE = 5_000_000
#: Brackets within brackets of a JSON object; deeper ones are bad records.
JSON_DEPTH = 100
#: Bytes that are left free on a disk, or a hundredth of it if that is less; beyond, writing ends with an error.
DISK_LEFT_FREE = 1 << 26

#: Different contents of a collection for which runs of a substream choose the events; beyond, a push is refused.
GUESSED_CONTENTS = 100_000
#: The same where runs are kept as sets, which take the square of the time.
GUESSED_TOGETHER = 10_000

# Endings: beyond these, less is simplified, proved or sent ahead; the answer is the same

#: Pairs of states looked at; beyond, a transducer counts as ambiguous, or its complex events as parts of others.
AMBIGUITY_PAIRS = 20_000
#: Pairs of states compared for simulation; beyond, none counts as simulated.
SIMULATION_PAIRS = 20_000
#: Transitions of a transducer that chooses by NEXT or LAST itself; beyond, the engine compares runs.
CHOOSING_TRANSITIONS = 32
#: Pairs of transitions compared; beyond, any two runs may end together.
ABREAST_PAIRS = 100_000
#: Pairs of states compared when rivals are left out; beyond, fewer are left out.
ABREAST_STATES = 2_500
#: States of a transducer determinised on its outputs; larger ones stay as they are.
OUTPUT_STATES = 64
#: Its transitions.
OUTPUT_TRANSITIONS = 600
#: Cases that its states tell apart.
OUTPUT_CASES = 1_000
#: Operands compared with each other to leave some out; more are all kept.
COMPARED_ALTERNATIVES = 200
#: Leaves of a part that is simplified by what holds around it; larger parts are left as they are.
SIMPLIFIED_LEAVES = 50
#: Distinct tests of a transducer; beyond, the types of events alone decide which are relevant.
RELEVANCE_TESTS = 500
#: States looked at in search of a string; beyond, none is found.
STRING_STATES = 1_000
#: Constants combined with each other in search of a value; further ones are left out.
COMBINED_CONSTANTS = 12
#: Steps spent on the remarks on a query; beyond, further remarks are left out.
REMARK_STEPS = 50_000
#: Nodes of a formula on which remarks are made.
REMARK_NODES = 1_500
#: Transitions of a formula on which remarks are made.
REMARK_TRANSITIONS = 1_000
#: Nodes of a formula whose automaton is optimised to find what it remembers for good.
REMARK_OPTIMISED_NODES = 100
#: Questions asked about a formula; further ones are left out.
REMARK_QUESTIONS = 40
#: Splits in the proof that conditions leave nothing out; beyond, it counts as not proved.
EXHAUSTIVE_SPLITS = 10_000
#: Leaves of a condition that is sent to the reader of the input; of larger ones the types of events alone are sent.
PUSHED_LEAVES = 200
#: Rows of a batch from which on that pays.
NARROWED_ROWS = 256
#: Rows of a batch from which on its nulls are counted; fewer are read faster than counted.
COUNTED_ROWS = 1 << 12
#: The same for joining events, and how many rows passes must leave for that.
JOINED_ROWS = 256
#: Where narrowing does not pay, one batch in this many is narrowed; in twice as many each time, up to eight times.
NARROWING_PAUSE = 8
#: Keys that have states of their own where rows are ruled out by what runs can pass through, as many again for each so
#: many rows; more share them. Both are powers of two.
FLOW_KEYS, FLOW_KEY_ROWS = 1 << 17, 1 << 19
#: If the engine sweeps the state twice within this many events of a large batch, it makes more room, up to this many
#: entries. A batch is large from a quarter of these events on.
SWEPT_EVENTS, SWEPT_ROOM = 1 << 12, 1 << 15
#: Events from which on their matches may be counted without a match graph.
COUNTED_EVENTS = 256
#: Instructions for one event in the scan of batches; further tests are evaluated by columns.
SCAN_INSTRUCTIONS = 4_000
#: Instructions of a condition with aggregates, and for each event that it reads if that is more; others are left to the
#: automaton.
LINKED_INSTRUCTIONS, LINKED_INSTRUCTIONS_EACH = 300, 55
#: Nodes of the decisions of a scan; beyond, they are forgotten.
SCAN_NODES = 50_000
#: Answers to questions about events that are found before any event; others when an event asks.
SCAN_EXPLORED = 64
#: The same as SCAN_NODES for the number of nodes times that of transitions, which nodes may have to remember.
SCAN_KNOWLEDGE = 5_000_000
#: Items of an IN that Spark is sent.
SPARK_IN_ITEMS = 1_000
#: Signs % of a LIKE that Spark is sent.
SPARK_LIKE_WILDCARDS = 2
#: Conditions considered for Spark to evaluate instead of columns; with more all columns are sent.
NARROWED_CONDITIONS = 100
#: Types of events looked for in the input; with more, nothing is said of them.
TYPES_LOOKED_FOR = 50
#: Entries of a list that an explanation shows; the others are counted.
EXPLAINED_ENTRIES = 40
#: Partial matches of a configuration, and matches of an event, that a trace lists; the others are counted.
TRACED_MATCHES = 20
#: Values, events and matches that an answer of `why_not` lists; the others are counted.
EXPLAINED_VALUES = 6

# Pictures: beyond, less is shown, and the picture says so

#: Matches on a page, unless the caller gives a number.
VIEWED_MATCHES = 100_000
#: Matches whose durations and sizes are plotted.
PLOTTED_MATCHES = 1_000_000
#: Events of the matches on a page; with more, there are fewer matches.
VIEWED_MARKS = 2_000_000
#: Events on a page; of more, a selection.
VIEWED_EVENTS = 2_000_000
#: Lanes of a page; further values share one.
VIEWED_LANES = 1_000
#: Columns that lanes are made of, where no keys are named.
VIEWED_KEYS = 3

# Messages

#: Characters of the arguments of a predicate.
ARGUMENT_CHARACTERS = 200

# Sizes: they decide about speed and memory alone

#: Rows of a push that are prepared and processed at a time.
BATCH_ROWS = 1 << 17
#: The same at first where rows are ruled out by what runs of their key can pass through; more where windows are long.
FLOW_ROWS = 1 << 21
#: The same where whole columns are compared and hardly any events are written, and at most where windows are long.
COLUMN_ROWS = 1 << 22
#: Chunks of a table that are processed one after another where they are; more are joined first, as large batches pay.
FEW_CHUNKS = 4
#: Alternatives of the condition that an event does not end a wait; a condition with more is tested as a whole.
LOOP_ALTERNATIVES = 16
#: Members of sets of runs that there is room for once there are more than a few.
MEMBERS = 1 << 12
#: Collections that there is room for once there are more than a few.
COLLECTIONS = 1 << 12
#: Signatures that a recogniser remembers from batch to batch.
SIGNATURES = 100_000
#: Beyond this many configurations a state has an index, if it can have one.
INDEXED_CONFIGURATIONS = 256
#: Plans that a query remembers, of the last schemas it was asked for.
PLANS = 4
#: Nodes of the match graph that there is room for at first.
FIRST_NODES = 1 << 14
#: Events that a recogniser keeps before it looks for those that can go.
EVENT_SLACK = 65_536
#: Rows of a batch that is kept whole until then, as hardly any of its events is needed in the end.
WHOLE_BATCH_ROWS = 8_192
#: Smaller batches that stay whole until their events are joined; a batch of rows is then joined to others.
RECENT_BATCHES = 64
#: Bytes of events that are joined to one batch at most; Arrow has room for twice as much text.
JOINED_BYTES = 1 << 30
#: Configurations that a call of the engine's step looks at, about, before the caller may stop it or wait for it.
CALL_WORK = 1 << 18
#: Bytes of a state that is copied before a push, so that an interruption can be undone; larger ones are copied where
#: the push has this many rows, or the last one took so long, that it costs little.
COPIED_BYTES = 1 << 15
COPIED_BYTES_EACH = 64
COPIED_BYTES_A_SECOND = 500_000_000
#: Events that came one by one and are kept so; more are joined to a batch.
SINGLE_EVENTS = 1024
#: Rows of files and of tasks of Spark that are pushed at a time, and their bytes at most, about.
PUSH_ROWS, PUSH_BYTES = 1 << 20, 1 << 26
#: Rows of the chunks of a table, on average; smaller ones are joined, as each costs something to look into.
CHUNK_ROWS = 4096
#: Strings beyond those of the query that a recogniser keeps before it looks for those that can go.
STRING_SLACK = 100_000
#: Tests of which a scan asks one at a time, as long as this many are left to ask.
SCAN_ASKED_ALONE = 6
#: Texts of a column that a scan has room for at a time.
SCAN_TEXTS = 1 << 20
#: Rows of the first batch where it is asked whether there is a match, and how many times as many the next one has.
SOON_ROWS, SOON_TIMES = 1 << 14, 8
#: Texts of a column whose tests are remembered.
TESTED_TEXTS = 100_000
#: Distinct texts of a batch that are read one by one.
ENCODED_TEXTS = 256
#: Pairs of detections and nodes; beyond, matches are counted along a sliding window, unless a plain walk is short.
COUNTED_PAIRS = 1 << 24
#: The same for aggregates over matches.
FOLDED_PAIRS = 1 << 20
#: The nodes that a plain walk may visit, for each node and each detection, before it is given up for a sliding window,
#: which costs about as much for them.
FOLD_VISITS = 8
#: Words of the numbers of matches that are counted at a time, where a number has several.
COUNTED_WORDS = 1 << 20
#: Nodes of a graph of chosen matches that there is room for at first, for each detection.
CHOSEN_NODES_EACH = 64
#: The same for all detections, at most.
CHOSEN_NODES = 1 << 15
#: Matches of a record batch where all matches are wanted at once.
LARGE_RESULT_ROWS = 1 << 20
#: Places of a column from which on a kernel gathers its values; of fewer, Arrow does.
GATHERED_ROWS = 1 << 13
#: Bytes of repeated texts that are kept for the next batch.
REPEATED_BYTES = 1 << 23
#: Bytes of the longest text, or of the longest list of texts and the texts in it; beyond, Arrow takes them.
GATHERED_SIZE = 64
#: The least number of events in a thread's slice: with fewer, preparing a slice does not pay.
THREAD_SLICE_LEAST = 1 << 16
#: Events of a thread's slice, at most: so few that there is work for all threads.
THREAD_SLICE_MOST = 1 << 19
#: Slices for each thread, so that none has to wait long for another one at the end.
THREAD_SLICES = 4
#: The first slice is this part of the events, if that is enough: one thread recognises it to see what others take.
THREAD_FIRST = 32
#: Seconds for which more threads than one do not pay.
THREAD_SECONDS = 0.025
#: The least number of seconds that a thread's slice takes.
THREAD_SLICE_SECONDS = 0.008
#: A slice is this many times as long as the overlap with the slice before, which is recognised twice.
THREAD_OVERLAP = 4
#: The same if need be; below, one thread recognises the whole table.
THREAD_OVERLAP_LEAST = 2
#: Bytes of a DataFrame, as Spark estimates them, below which no job finds out more.
SPARK_SMALL_BYTES = 1 << 22
#: Events of a DataFrame below which one task recognises all of them.
SPARK_SMALL_EVENTS = 1 << 18
#: Events of a slice of a DataFrame, at least.
SPARK_SLICE_EVENTS = 1 << 18
#: Slices of a DataFrame, at most.
SPARK_SLICES = 256
#: Events that slices read twice, as a share of all; beyond, the DataFrame is not cut.
SPARK_OVERLAP = 0.5
#: Events at the boundaries of partitions, as a share of all; beyond, partitions do not stay as they are.
SPARK_BOUNDARY = 0.25
#: Events of the longest slice, as a share of all; beyond, one task could as well read all of them.
SPARK_LONGEST = 0.75
#: Events of one key, as a share of all; beyond, `explain` says that its task has most of the work.
SPARK_SKEW = 0.25
#: With fewer events no task has much work.
SPARK_SKEW_EVENTS = 100_000
#: Seconds within which Spark has to tell the counts of a job that has ended.
SPARK_OBSERVED_SECONDS = 300
#: Values of the ordering column that tell where to cut.
SPARK_SAMPLE = 1 << 16
#: Parts counted for each slice where a window has to be measured on the events themselves.
SPARK_PARTS = 8
#: Bits that count the rows of a piece of a partition.
SPARK_PIECE_BITS = 14
#: Rows of a row group that a task of a DataFrame reads by itself; beyond, Spark reads the file.
SPARK_HELD_ROWS = 1 << 20
#: Files of a DataFrame that tasks read by themselves, at most.
SPARK_FOOTERS = 256
#: Bytes of a piece of a large file of text; pieces are read in parallel.
FILE_PIECE_BYTES = 64 << 20
#: Bytes of a file that are read at a time.
READ_BYTES = 1 << 20
#: Bytes that the header of a file and the row after it nearly always fit into.
FILE_HEAD_BYTES = 1 << 16
#: Values of a column of text that are tried before all are.
SAMPLED_VALUES = 100
#: Rows of a row group of Parquet or ORC that is written.
OUTPUT_ROW_GROUP = 65_536
#: Bytes that are written between two looks at the free space.
DISK_LOOK_BYTES = 1 << 24
#: An input may take the free memory divided by this; the rest is for matches and for other programs.
MEMORY_SHARE = 2
#: Matches from which on all of them are counted before the next is written.
MATCHES_COUNTED = 1_000_000
#: Rows after which their size tells how much room the others need.
ROWS_WEIGHED = 1 << 18
#: Rows that the command line writes at a time.
OUTPUT_BATCH_ROWS = 10_000
#: Rows of a slice that the data source aims at: half a second of work, ten times the start of a task.
SOURCE_SLICE_ROWS = 2_000_000
#: Rows that a task of the data source reads and hands on at a time.
SOURCE_BATCH_ROWS = 1 << 17
#: Bytes of events that may wait in a task of the data source to be put into order.
SOURCE_WAITING_BYTES = 1 << 28
#: Estimates of what waits may be wrong by this factor before such a task gives up.
SOURCE_TOLERANCE = 4
#: Footers of files that are fetched at a time.
FOOTERS_AT_ONCE = 16
#: Bytes for each value of a column of text in a file, up to which it is read as a dictionary.
DICTIONARY_BYTES = 4
#: Ranges of the ordering column that the input is told, so that it can skip what lies outside.
SPARK_RANGES = 64
#: Parts, at most, into which a DataFrame is divided to be numbered.
SPARK_NUMBERED_PARTS = 256
#: Rows of a batch of matches that a slice gives.
RESULT_ROWS = 1 << 14
#: Places inside each row group at which the data source considers a cut.
SOURCE_CUT_PLACES = 16
#: Numbers of slices for each core that it considers, besides others.
SOURCE_CUT_ROUNDS = 8
#: Bytes of a value in the state store of a streaming query; snapshots are cut into such chunks.
STREAM_CHUNK_BYTES = 1 << 20
#: The log of a bucket may be this many times as long as its snapshot; then a new snapshot replaces both.
STREAM_LOG_RATIO = 4
#: The bytes that it may always have.
STREAM_LOG_BYTES = 1 << 16
#: Buckets of streaming queries that a process keeps in memory.
STREAM_BUCKETS_HELD = 256
#: Bytes of a file of text, and rows of a Parquet or ORC file, that the studio loads; of larger ones it shows a part.
STUDIO_BYTES = 1 << 26
STUDIO_ROWS = 1_000_000
#: Bytes that a run of the studio may take to remember partial matches and matches.
STUDIO_MEMORY = 1 << 30
#: Matches that the studio draws in their stream.
STUDIO_DRAWN = 100_000
#: Seconds and matches of each query for which the studio compares two queries on a sample.
STUDIO_COMPARED_SECONDS = 30
STUDIO_COMPARED_MATCHES = 5_000_000
#: Rows of the sample that the studio runs a query on while it is written, and the seconds that it may take.
STUDIO_PREVIEW_ROWS = 20_000
STUDIO_PREVIEW_SECONDS = 2
#: Queries that the studio remembers of a tab.
STUDIO_HISTORY = 20
#: Tabs of browsers whose sessions the studio keeps.
STUDIO_TABS = 16
#: Rows that a run of the studio processes at a time.
STUDIO_PUSHED_ROWS = 20_000
#: Events of a stretch that the studio looks at one by one.
STUDIED_EVENTS = 2_000
#: Events of the sample that the studio lists at once.
LISTED_EVENTS = 200
#: Queries of a set that a notebook shows.
DRAWN_QUERIES = 10
