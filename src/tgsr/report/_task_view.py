"""One task of a study as tables and findings look at it: its arms, which are compared, and with which one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tgsr.report._arms import reference_arm
from tgsr.report._table import slug
from tgsr.study._limits import Control, Limit, limits, zero_data_controls
from tgsr.study._negative_transfer import BASE, NegativeTransfer, events
from tgsr.study._pairs import Paired, arms_of, compare_all, compare_arms, errors_of, runs_of, tasks_of
from tgsr.study._record import Record
from tgsr.study._results import StudyResults
from tgsr.study._shipped import shipped_specs
from tgsr.study._statistics import Summary, summarise
from tgsr.study.paper import PaperTable, results_table

PARAMETER, FIELD = "parameter", "field"
FRACTIONS = {"gradient"}  # errors that are no percentages


@dataclass(frozen=True, eq=False)
class TaskView:
    """A task of a study. Arms without readings are controls: they are compared with their twins, not with methods."""

    results: StudyResults
    task: str
    key: str  # what the keys of its tables begin with

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The target runs."""
        return tuple(r for r in self.results.records if r.role == "target" and r.task == self.task)

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """All arms, in the order of the study."""
        return arms_of(self.records)

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The arms that have readings; all of them where none has."""
        fed = tuple(arm for arm in self.arms if self.first(arm).observations > 0)
        return fed or self.arms

    @cached_property
    def reference(self) -> str:
        """The arm that the others are compared with: the paper's for a shipped study, else tgsr, else the first."""
        arm = reference_arm(self.results, self.task)
        return arm if arm in self.compared else self.compared[0]

    @cached_property
    def references(self) -> tuple[str, ...]:
        """The reference, and its twins with other numbers of readings."""
        first = self.first(self.reference)
        twins = [arm for arm in self.compared if arm != self.reference and self._twins(self.first(arm), first)]
        return (self.reference, *twins)

    @cached_property
    def unknowns(self) -> tuple[str, ...]:
        """Their names, from the runs that have them."""
        return tuple(dict.fromkeys(name for r in self.records for name in r.unknowns))

    @cached_property
    def extras(self) -> tuple[str, ...]:
        """Errors that have no column among the results, percentages first."""
        known = {PARAMETER, *self.unknowns, *([FIELD] if self.has_truth else [])}
        found = dict.fromkeys(name for r in self.records for name in r.errors)
        return tuple(sorted((name for name in found if name not in known), key=lambda name: name in FRACTIONS))

    @property
    def has_truth(self) -> bool:
        """Whether errors of the parameters are known."""
        return any(PARAMETER in r.errors for r in self.records)

    def first(self, arm: str) -> Record:
        """One run of an arm: its method, options and readings are those of all of them."""
        return next(r for r in self.records if r.arm == arm)

    def runs(self, arm: str) -> dict[int, Record]:
        """The run of every seed."""
        return runs_of(self.records, self.task, arm)

    def errors(self, arm: str, error: str = PARAMETER) -> dict[int, float]:
        """The error of every seed, infinite where a run failed."""
        return errors_of(self.records, self.task, arm, error)

    def summary(self, arm: str, error: str = PARAMETER) -> Summary:
        """Of an arm's errors."""
        if (arm, error) not in self._samples:
            self._samples[arm, error] = summarise(self.errors(arm, error).values())
        return self._samples[arm, error]

    def peers(self, arm: str) -> tuple[str, ...]:
        """The arms that have as many readings."""
        return tuple(a for a in self.compared if self.first(a).observations == self.first(arm).observations)

    def pairs(self, error: str = PARAMETER, reference: str | None = None) -> tuple[Paired, ...]:
        """The reference (or another arm) against its peers, with Holm's adjustment among these comparisons."""
        arm = reference or self.reference
        if (arm, error) not in self._found:
            self._found[arm, error] = compare_all(self.records, self.task, arm, self.peers(arm), error)
        return self._found[arm, error]

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """The arms that start at random, as many as there are numbers of readings."""
        found = {self.first(arm).observations: arm for arm in reversed(self.compared) if self.first(arm).method == BASE}
        return tuple(found.values())[::-1]

    def against_base(self, arm: str, error: str = PARAMETER) -> Paired | None:
        """An arm against the random start with as many readings; None where it is that start, or there is none."""
        base = next((b for b in self.bases if b in self.peers(arm)), None)
        if base is None or base == arm:
            return None
        if (arm, error) not in self._starts:
            self._starts[arm, error] = compare_arms(self.records, self.task, arm, base, error)
        return self._starts[arm, error]

    @cached_property
    def negative_transfer(self) -> tuple[NegativeTransfer, ...]:
        """Events against the random start with as many readings; none where the study has no such arm."""
        pairs = [(self.against_base(arm), self.against_base(arm, FIELD)) for arm in self.compared]
        return tuple(events(parameter, field) for parameter, field in pairs if parameter is not None and parameter.n)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """Error over the statistical limit."""
        return limits(self.records, self.task, self.compared)

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """With readings and without."""
        return zero_data_controls(self.records, self.task)

    @property
    def ablation(self) -> bool:
        """Whether the study is one that ships: its own tables then stand in the place of the results."""
        return self.results.name in shipped_specs()

    @cached_property
    def paper(self) -> PaperTable | None:
        """The paper's results, where it has some for the task and the study is not one of its ablations."""
        return None if self.ablation else results_table(self.task)

    def paper_arm(self, arm: str) -> str:
        """What the paper calls this arm: the method's name where its options are the defaults; "" otherwise."""
        run = self.first(arm)
        usual = not run.options and arm in self.compared
        twins = [a for a in self.compared if self.first(a).method == run.method and not self.first(a).options]
        return run.method if usual and twins[0] == arm else ""

    @cached_property
    def _found(self) -> dict[tuple[str, str], tuple[Paired, ...]]:
        return {}

    @cached_property
    def _starts(self) -> dict[tuple[str, str], Paired]:
        return {}

    @cached_property
    def _samples(self) -> dict[tuple[str, str], Summary]:
        return {}

    def _twins(self, a: Record, b: Record) -> bool:
        same = a.method == b.method and dict(a.options) == dict(b.options)
        return same and a.observations != b.observations


@lru_cache(maxsize=2)
def views(results: StudyResults) -> tuple[TaskView, ...]:
    """Every task with target runs, in the order of the study."""
    tasks = tasks_of(results.records)
    keys = [slug(task) for task in tasks]
    unique = [key if keys.count(key) == 1 else f"{key}-{i + 1}" for i, key in enumerate(keys)]
    return tuple(TaskView(results, task, key) for task, key in zip(tasks, unique, strict=True))


def named(seeds: Iterable[int]) -> str:
    """Seeds as a person lists them."""
    return ", ".join(str(seed) for seed in seeds)


def median_of(values: Mapping[str, float] | Iterable[float]) -> float:
    """The median over extended reals."""
    return summarise(values.values() if isinstance(values, Mapping) else values).median
