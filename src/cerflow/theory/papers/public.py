"""The public names of `cerflow.automata`, which imports this module when the first of them is used.

It has no `__all__`: type checkers would take one that is computed for empty.
"""

from cerflow.base.events import Stream as Stream
from cerflow.language.automaton import HEAD as HEAD
from cerflow.language.automaton import show_state as show_state
from cerflow.theory.deciding.witnesses import Answer as Answer
from cerflow.theory.deciding.witnesses import Witness as Witness
from cerflow.theory.papers.constructions.closure import *
from cerflow.theory.papers.constructions.determinize import *
from cerflow.theory.papers.constructions.minimize import minimize as minimize
from cerflow.theory.papers.constructions.normal_forms import *
from cerflow.theory.papers.constructions.operators import *
from cerflow.theory.papers.model.automaton import MARKED as MARKED
from cerflow.theory.papers.model.automaton import SKIPPED as SKIPPED
from cerflow.theory.papers.model.faults import *
from cerflow.theory.papers.model.models import *
from cerflow.theory.papers.model.runs import *
from cerflow.theory.papers.translations.compile import *
from cerflow.theory.papers.translations.conversions import *
from cerflow.theory.papers.translations.stages import Stages as Stages
from cerflow.theory.papers.translations.stages import stages as stages
