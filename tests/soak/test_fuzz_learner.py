"""Random calls of live learners, sensible and senseless ones, against a plain NumPy model of their books.

Only a RegretlessError may come out of a call; a call that is rejected leaves the saved state byte for byte as it was;
after one that is accepted the learner says what the model says: ids, decisions, rows and their values, totals,
counts, scales.
"""

import copy
import hashlib
import itertools
import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from regretless.errors import OracleError, RegretlessError
from regretless.live.learner import Learner
from soak.learner_feedback import report_on
from soak.learner_kinds import DIM, Kind, kinds
from soak.nonsense import nonsense
from soak.sizes import size

EPISODE = 400
"""Calls of one learner before the next one has its turn: enough for scales to come to rest, after 64 learned rounds."""


class Episode:
    """One learner with its model; every call is checked when it ends."""

    def __init__(self, kind: Kind, rng: random.Random, place: Path):
        self.kind, self.rng, self.file = kind, rng, place / "learner.db"
        self.noise = np.random.default_rng(rng.randrange(2**32))
        self.learner, self.model = kind.learner(rng.randrange(2**32)), kind.model()
        self.saved = self.digest()
        self.counts: Counter[str] = Counter()
        self.overflowed = False  # without scaling a huge number is refused, or ruins what comes after it

    def digest(self) -> str:
        """A hash of the checkpoint."""
        self.learner.save(self.file)
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    def sized(self, size: float) -> str:
        """Whether a call with numbers of this size is accepted."""
        self.overflowed |= size > 1e100 and not self.model.scaling
        return "either" if size > 1e100 or self.overflowed else "accept"

    def attempt(self, call: Callable[[], Any], may: str) -> Any:
        """What an accepted call returns, None for a rejected one; ``may`` says which of the two: accept, reject or
        either.
        """
        failed = self.kind.solver.failed if self.kind.solver else 0
        try:
            answer = call()
        except OracleError:
            assert may != "accept" or (self.kind.solver and self.kind.solver.failed > failed), (
                "OracleError without a failure"
            )
        except RegretlessError as error:
            if may == "accept":
                raise AssertionError(f"rejected: {error}") from None
        else:
            assert may != "reject", f"accepted: {answer}"
            self.counts["accepted"] += 1
            return answer
        self.counts["rejected"] += 1
        assert self.digest() == self.saved, "a rejected call changed the saved state"
        return None

    # Calls, each with what it must do.

    def decide(self) -> None:
        """One context, or several."""
        several = self.rng.random() < 0.3
        count = self.rng.randrange(1, 4) if several else 1
        size = self.rng.choice([1.0] * 18 + [1e6, 1e300])
        x = size * self.noise.normal(size=(count, *self.kind.shape))
        instances = [self.kind.instance(self.rng) for _ in x]
        given = None if not self.kind.limited else instances if several else instances[0]
        context = x.tolist() if self.rng.random() < 0.3 else x
        explore = self.rng.random() < 0.7
        if several:
            call = lambda: self.learner.decide_batch(context, instances=given, explore=explore)  # noqa: E731
        else:
            call = lambda: self.learner.decide(context[0], instance=given, explore=explore)  # noqa: E731
        found = self.attempt(call, self.sized(size))
        if found is None:
            return
        last = self.model.last
        for choice, row, instance in zip(found if several else [found], x, instances, strict=True):
            assert choice.id == self.model.made + 1, f"id {choice.id} after {self.model.made} decisions"
            assert np.array_equal(choice.context, row), "another context"
            if choice.fallback:
                assert np.array_equal(choice.w, last), "a fallback that is not the last decision"
            else:
                open_ = self.kind.open_decisions(instance)
                costs = open_ @ choice.cost_sample
                assert np.any(np.all(np.isclose(open_, choice.w, atol=1e-6), axis=1)), f"infeasible: {choice.w}"
                slack = 1e-6 * max(1e-300, float(np.max(np.abs(choice.cost_sample))))
                assert choice.cost_sample @ choice.w <= costs.min() + slack, f"not the best: {choice.w}"
                last = choice.w
            self.model.decide(choice)

    def decide_on_nonsense(self) -> None:
        """A bad context, instance or option, after a good decision, which fixes the form of instances."""
        if self.model.made == 0:
            self.decide()
            return
        rng, good = self.rng, self.noise.normal(size=self.kind.shape)
        where = rng.randrange(4)
        if where == 0:
            instance = nonsense(rng) if rng.random() < 0.7 else None if self.kind.limited else np.ones(DIM)
            call = lambda: self.learner.decide(good, instance=instance)  # noqa: E731
            is_mask = isinstance(instance, np.ndarray) and instance.dtype == bool and instance.shape == (DIM,)
            may = "either" if self.kind.limited == "mask" and is_mask else "reject"
        elif where == 1:
            call, may = lambda: self.learner.decide(good, explore=nonsense(rng)), "either"
        else:
            bad = nonsense(rng)
            if where == 2:
                good.flat[rng.randrange(good.size)] = rng.choice([np.nan, np.inf, -np.inf])
                bad = np.array([good, good]) if rng.random() < 0.5 else good
            call, may = lambda: self.learner.decide(bad, instance=self.kind.instance(rng)), "reject"
        found = self.attempt(call, may)
        if found is not None:
            self.model.decide(found)

    def learn(self) -> None:
        """Feedback on a waiting decision: one of the five forms, all of it or a part, perhaps contradicting itself."""
        if not self.model.waiting:
            return
        id = self.rng.choice(list(self.model.waiting))
        size = self.rng.choice([1.0] * 14 + [1e3, 1e6, 1e200])
        w, cost = self.model.waiting[id].w, size * self.noise.normal(size=DIM)
        report, expected = report_on(self.kind, w, cost, self.rng, self.noise)
        may = "reject" if expected is None else self.sized(size)
        receipt = self.attempt(lambda: self.learner.learn(self.rng.choice([id, np.int64(id)]), **report), may)
        if receipt is None:
            return
        assert (receipt.id, receipt.new, receipt.complete) == (id, True, expected.complete), f"{receipt}"
        total, absurd = self.model.learn(id, expected, report)
        assert (receipt.message != "learned") == absurd, f"{receipt.message}, but the model says {absurd}"
        signature = self.learner.state.learned[id].signature
        np.testing.assert_allclose(
            signature, expected.signature(), rtol=1e-9, atol=1e-12, err_msg="other rows were taken"
        )
        found = self.learner.state.health.ordered_steps()[-1, 1]
        assert bool(np.isfinite(found)) == (total is not None), "a total that is not known, or none that is"
        if total is not None:
            np.testing.assert_allclose(found, total, rtol=1e-6, atol=1e-9 * size, err_msg="another total")

    def learn_again(self) -> None:
        """Feedback that was learned before, or contradicts what was learned."""
        if not self.model.remembered():
            return
        id = self.rng.choice(self.model.remembered())
        expected, report = self.model.learned[id]
        if self.rng.random() < 0.5:
            receipt = self.attempt(lambda: self.learner.learn(id, **report), "accept")
            assert (receipt.id, receipt.new, receipt.complete) == (id, False, expected.complete), f"{receipt}"
            assert self.digest() == self.saved, "a repetition changed the saved state"
            return
        other = copy.deepcopy(report)
        for name in other:
            if name == "linear":
                other[name] = (other[name][0], np.asarray(other[name][1]) * 1.5 + 1.0)
            elif name == "components":
                other[name] = {key: 1.5 * value + 1.0 for key, value in other[name].items()}
            else:
                other[name] = np.asarray(other[name]) * 1.5 + 1.0
        self.attempt(lambda: self.learner.learn(id, **other), "reject")

    def learn_nonsense(self) -> None:
        """Feedback of no form, on a decision that waits or on one that does not exist."""
        rng = self.rng
        gone = [i for i in range(1, self.model.made + 1) if i not in self.model.waiting and i not in self.model.learned]
        strange = [0, -1, self.model.made + 1, 10**30, 1.0, None, *gone[-3:], nonsense(rng)]
        waiting = list(self.model.waiting)
        forms = rng.sample(["total", "components", "costs", "linear", "values"], rng.choice([0, 1, 1, 1, 2, 3]))
        report = {form: nonsense(rng) for form in forms}
        if "linear" in report and rng.random() < 0.7:
            report["linear"] = (nonsense(rng), nonsense(rng))
        if not waiting or rng.random() < 0.3:
            id, report = rng.choice(strange), {"total": 1.0} if rng.random() < 0.5 else report
        else:
            id = rng.choice(waiting)
        self.attempt(lambda: self.learner.learn(id, **report), "reject")

    def explain(self) -> None:
        """Why a decision was made; of those that are neither waiting nor remembered nothing is known."""
        known = [*self.model.waiting, *self.model.remembered()]
        if known and self.rng.random() < 0.7:
            id = self.rng.choice(known)
            found = self.attempt(lambda: self.learner.explain(id), "accept")
            if found is not None:
                scale = max(1.0, float(np.max(np.abs(found.mean))))
                assert found.gap >= -1e-6 * scale, f"better than the greedy decision by {-found.gap}"
                complete = id in self.model.learned and self.model.learned[id][0].complete
                assert (found.residual is not None) == complete, f"residual {found.residual} of {id}"
        else:
            self.attempt(lambda: self.learner.explain(self.rng.choice([0, 10**9, nonsense(self.rng)])), "reject")

    def save_and_load(self) -> None:
        """The loaded learner is the saved one, byte for byte."""
        self.learner = self.attempt(lambda: Learner.open(self.file, self.kind.problem(), read_only=True), "accept")
        assert self.digest() == self.saved, "saved, loaded and saved again is another file"

    def check(self) -> None:
        """The learner says what the model says."""
        health, model = self.learner.health(), self.model
        found = (health.decisions, health.learned, health.waiting, health.expired)
        wanted = (model.made, model.count, len(model.waiting), model.expired)
        assert found == wanted, f"made, learned, waiting, expired: {found}, the model says {wanted}"
        assert self.learner.waiting == sorted(model.waiting), f"waiting: {self.learner.waiting}"
        state = self.learner.state.policy
        assert (0 if state is None else int(state.version)) == model.count, "other learning steps"
        if state is None or not model.scaling:
            return
        for name, scale in (("contexts", model.contexts), ("costs", model.costs)):
            own = getattr(state, name)
            assert int(own.count) == len(scale.rows), f"{name}: {int(own.count)} rows, the model says {len(scale.rows)}"
            for part in ("centre", "spread"):
                found, wanted = np.asarray(getattr(own, part)), getattr(scale, part)
                np.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=f"{part} of {name}")

    def play(self) -> None:
        """One call."""
        calls = [self.decide, self.decide_on_nonsense, self.learn, self.learn_again, self.learn_nonsense, self.explain]
        self.rng.choices([*calls, self.save_and_load], [6, 3, 7, 2, 4, 1, 1])[0]()
        self.saved = self.digest()
        self.check()


def fuzz(calls: int, seed: int, each: int) -> tuple[list[str], Counter[str]]:
    """The findings among so many calls, and how many of them were accepted and rejected."""
    rng = random.Random(seed)
    chosen = itertools.cycle(kinds())
    found: list[str] = []
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        while counts.total() < calls:
            episode = Episode(next(chosen), rng, Path(place))
            end = min(each, calls - counts.total())
            try:
                while episode.counts.total() < end:
                    episode.play()
            except Exception:
                at = counts.total() + episode.counts.total()
                found.append(f"{episode.kind.name}, call {at}: {traceback.format_exc(limit=-3)}")
                episode.counts["cut short"] = max(0, end - episode.counts.total())
            counts += episode.counts
    return found, counts


def test_learners_agree_with_the_model_after_random_calls():
    calls, seed = size("calls", 176), size("seed", 3)
    findings, counts = fuzz(calls, seed, EPISODE if calls > 2000 else 44)
    assert not findings, "\n".join(findings)
    assert counts["accepted"] > 0
    assert counts["rejected"] > 0
