"""The names that modules had before they moved into rooms: they still import, and pickles of that time still load."""

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

# Where modules went: new name = old name, in `privspan`; ~ stands for the folder `algorithms.` of that time.
_PLACES = """_lib.frozen=_frozen  approximate=~approximate  blocks.histogram=~histogram  blocks.rank=~rank
boosted=~boosted  exact.enumeration=~exact_enumeration  exact.exact=~exact  exact.hyperplane=~exact_hyperplane
exact.plan=planner_exact  exact.search=~exact_search  exact.votes=~exact_votes  ledger.release_file=release_file
privacy.gdp=gdp  privacy.mu_ledger=~ledger  privacy.noise=noise  privacy.randomness=randomness
privacy.selection=selection  privacy.zcdp=zcdp  private=~private  rows.dealing=dealing
rows.partitioned_rows=partitioned_rows  rows.unit=unit_rows  stable.balls=leverage_balls
stable.certificate=leverage_certificate  stable.groups=~stable_groups  stable.leverage=leverage
stable.records=~stable  stable.release=~stable_release  subspace.relations=relations  sums.adaptive=~adaptive
sums.analyze_gauss=baselines.analyze_gauss  sums.estimate=~estimate  sums.krylov=~krylov  sums.lazy_gauss=~lazy_gauss
sums.localised=~localised  sums.mean=~mean  sums.plan=planner_adaptive  sums.preconditioned=~preconditioned
sums.regression=~regression  sums.variance=~spectrum"""
_PAIRS = (pair.split("=") for pair in _PLACES.replace("~", "algorithms.").split())
_HOMES = {f"privspan.{old}": f"privspan.{new}" for new, old in _PAIRS}


class _Face(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:  # a function keeps the name that its module had, too
        if not (isinstance(value, ModuleType) and callable(vars(self).get(name))):
            super().__setattr__(name, value)


class _Finder:
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        folder = name == "privspan.algorithms"
        return ModuleSpec(name, self, is_package=folder) if folder or name in _HOMES else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None: ...  # Python makes one, whose place the real one takes

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name in _HOMES:
            warnings.warn(f"{name} has moved to {_HOMES[name]}.", DeprecationWarning, stacklevel=2)
            sys.modules[name] = import_module(_HOMES[name])
            sys.modules[name.rpartition(".")[0]].__class__ = _Face


finder = _Finder()  # for the end of `sys.meta_path`, where it is asked for what nobody else knows
