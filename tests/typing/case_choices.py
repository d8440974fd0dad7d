"""Types of what a learner returns."""

import numpy as np

import regretless as rg

learner = rg.Learner(rg.oracles.top_k(4, 2), context=3)
choice = learner.decide([0.5, -1.0, 2.0])
number: int = choice.id
learner.learn(choice.id, total=17.2)
learner.learn(choice.id, total="17.2")  # error: arg-type
ids: list[int] = [choice.id for choice in learner.decide_batch(np.zeros((2, 3)))]
learner.decide([0.5, -1.0, 2.0], explores=False)  # error: call-arg
