"""A network of PyTorch as the model of DFHPG."""

from torch import nn

import regretless as rg
from regretless.spec import Factory


def network(inputs, outputs, width):
    hidden = nn.Linear(inputs, width)
    return nn.Sequential(hidden, nn.ReLU(), nn.Linear(width, outputs))


class TorchNetwork(rg.models.Torch):
    make: Factory = network
    width: int = 16


rg.models.register("torch_network", TorchNetwork)
policy = rg.policies.DFHPG(model=TorchNetwork(width=8))
