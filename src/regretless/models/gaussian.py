"""Gaussian models ``p_θ(·|x) = N(μ_θ(x), σ² I)`` with a fixed exploration scale σ.

A context vector ``[p]`` predicts all costs at once; feature rows ``[d, p]`` share one predictor, row by row.

Networks of other libraries are means too. Equinox and Flax are JAX. PyTorch is called between compiled programs
(``host_calls``): its parameters are one array of the policy's state, so that optimisers are the library's own, and a
gradient comes from autograd as a product of a cotangent with the Jacobian.
"""

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from pydantic import Field

import regretless.models.networks as networks
from regretless import draws, extras
from regretless.errors import short_repr
from regretless.host_calls import RowFunction
from regretless.models.base import Params, PointModel, PointModelSpec
from regretless.spec import FactorySpec, number
from regretless.types import Context, Cost, Key


class GaussianModel(PointModel):
    """Base class of the Gaussian models, which differ in ``init`` and ``mean``.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    context_shape : tuple of int
        ``(p,)``, or ``(d, p)`` for a row per coordinate.
    scale : array
        σ, the standard deviation of each coordinate.
    """

    def sample(self, params: Params, context: Context, noise: Cost) -> Cost:
        return self.mean(params, context) + self.scale * noise

    def pullback(self, params: Params, context: Context, cotangent: Cost) -> Params:
        return jax.vjp(lambda theta: self.mean(theta, context), params)[1](cotangent)[0]

    def score(self, params: Params, context: Context, cost: Cost, noise: Cost, fresh: Bool[Array, ""]) -> Params:
        # ε/σ and not (ĉ − μ)/σ²: σ goes down to 5e-6, where the difference would be nothing but rounding.
        standard = jnp.where(fresh, noise, (cost - self.mean(params, context)) / self.scale)
        return self.pullback(params, context, standard / self.scale)

    def log_density(self, params: Params, context: Context, cost: Cost) -> Float[Array, ""]:
        standard = (cost - self.mean(params, context)) / self.scale
        return -0.5 * jnp.sum(jnp.square(standard) + jnp.log(2 * jnp.pi)) - self.dim * jnp.log(self.scale)


class GaussianLinearModel(GaussianModel):
    """``μ = M x`` for a context vector, ``μ = X θ`` for feature rows."""

    start: Float[Array, ""] = eqx.field(default_factory=lambda: number(0.01))

    def init(self, key: Key) -> Array:
        features = self.context_shape[-1]
        shape = (self.dim, features) if len(self.context_shape) == 1 else (features,)
        return self.start * draws.normal(key, shape)

    def mean(self, params: Array, context: Context) -> Cost:
        return params @ context if len(self.context_shape) == 1 else context @ params


class GaussianLinear(PointModelSpec):
    """Linear mean without intercept: ``μ = M x`` for a context vector, ``μ = X θ`` for feature rows.

    Parameters
    ----------
    start : float, default 0.01
        Standard deviation of the initial weights.
    """

    start: float = Field(default=0.01, ge=0)

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> GaussianLinearModel:
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ."""
        return GaussianLinearModel(dim, context_shape, number(scale), **self.hyperparameters())


class GaussianNNModel(GaussianModel):
    """``μ = W₂ relu(W₁ x + b₁) + b₂``; for feature rows the same net on each row, with one output."""

    width: int = eqx.field(static=True, default=128)

    def init(self, key: Key) -> networks.Layers:
        outputs = self.dim if len(self.context_shape) == 1 else 1
        return networks.init_he(key, (self.context_shape[-1], self.width, outputs))

    def mean(self, params: Any, context: Context) -> Cost:
        return networks.apply(params, context).reshape(self.dim)


class GaussianNN(PointModelSpec):
    """A mean with one hidden layer, ``μ = W₂ relu(W₁ x + b₁) + b₂``; for feature rows the same net on each row.

    Parameters
    ----------
    width : int, default 128
        Hidden units.
    """

    width: int = Field(default=128, ge=1)

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> GaussianNNModel:
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ."""
        return GaussianNNModel(dim, context_shape, number(scale), **self.hyperparameters())


def sizes(dim: int, context_shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many inputs and outputs a network has: feature rows share one with a single output."""
    return context_shape[-1], dim if len(context_shape) == 1 else 1


class ModuleModel(GaussianModel):
    """A mean ``μ = f_θ(x)`` by a network in JAX; for feature rows the same network on each row."""

    spec: "Module" = eqx.field(static=True)

    def init(self, key: Key) -> Params:
        module = self._module(key)
        if hasattr(module, "apply"):
            return module.init(key, jnp.zeros(self.context_shape[-1]))
        return eqx.filter(module, eqx.is_inexact_array)

    def mean(self, params: Params, context: Context) -> Cost:
        module = eqx.filter_eval_shape(self._module, jax.random.key(0))
        if hasattr(module, "apply"):
            network = functools.partial(module.apply, params)
        else:
            is_form = lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)  # noqa: E731
            network = eqx.combine(params, eqx.filter(module, is_form, inverse=True))
        return jax.vmap(network)(jnp.atleast_2d(context)).reshape(self.dim).astype(float)

    def _module(self, key: Key) -> Any:
        return self.spec.create(*sizes(self.dim, self.context_shape), key)


class Module(FactorySpec, PointModelSpec):
    """A network of Equinox or Flax as the mean of a Gaussian model; for feature rows the same network on each row.

    Parameters
    ----------
    make : callable, or where it is as "module:name"
        Called with the numbers of inputs and outputs and a random key, and with the settings that a subclass adds as
        keyword arguments. It returns an Equinox module, called with one vector, or an object with ``init(key, x)`` and
        ``apply(params, x)``, such as a Flax module.

    Examples
    --------
    >>> import equinox as eqx, regretless as rg
    >>> def network(inputs, outputs, key):
    ...     return eqx.nn.MLP(inputs, outputs, width_size=8, depth=1, key=key)
    >>> rg.policies.DFHPG(model=rg.models.Module(make=network))
    rg.policies.DFHPG(model=rg.models.Module(make=network))
    """

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> ModuleModel:
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ."""
        return _tried(self, lambda: ModuleModel(dim, context_shape, number(scale), self), dim, context_shape)


def _tried(spec: FactorySpec, build: Callable[[], Any], dim: int, context_shape: tuple[int, ...]) -> Any:
    """Return a model whose network fits the problem."""
    inputs, outputs = sizes(dim, context_shape)
    use = lambda model: model.mean(model.init(jax.random.key(0)), jnp.zeros(context_shape)) is None or model  # noqa: E731
    return spec.attempt(lambda: use(build()), f"a network of {inputs} inputs and {outputs} outputs")


TORCH_LOCK = threading.Lock()
"""Held while a module's parameters are replaced: by one thread at a time."""


@dataclasses.dataclass(frozen=True)
class TorchCall(RowFunction):
    """A function of rows around a PyTorch module: "init", "mean" or "pullback"."""

    spec: "Torch"
    dim: int
    context_shape: tuple[int, ...]
    module: Any = dataclasses.field(compare=False, default=None)
    method: str = ""

    def __call__(self, *rows: np.ndarray) -> Any:
        torch = extras.require("torch", extra="torch")

        if self.method == "init":
            flat = [torch.nn.utils.parameters_to_vector(self.create(int(seed)).parameters()) for seed in rows[0]]
            return torch.stack(flat).detach().numpy()
        arrays = [torch.tensor(array).double() for array in rows]
        with TORCH_LOCK:
            if self.method == "mean":
                return torch.func.vmap(self._mean)(*arrays).detach().numpy()
            gradients = torch.func.vmap(lambda w, x, slope: torch.func.vjp(self._mean, w, x)[1](slope))(*arrays)
        return tuple(gradient.detach().numpy() for gradient in gradients)

    def create(self, seed: int) -> Any:
        """Return a new module; its random numbers depend on the seed alone."""
        torch = extras.require("torch", extra="torch")

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = self.spec.create(*sizes(self.dim, self.context_shape))
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"expected a torch.nn.Module, got {short_repr(module)}")
        return module.double().eval()

    def _mean(self, weights: Any, context: Any) -> Any:
        torch = extras.require("torch", extra="torch")

        named = dict(self.module.named_parameters())
        parts = weights.split([parameter.numel() for parameter in named.values()])
        params = {name: part.reshape(old.shape) for part, (name, old) in zip(parts, named.items(), strict=True)}
        return torch.func.functional_call(self.module, params, (torch.atleast_2d(context),)).reshape(self.dim)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _torch_mean(call: TorchCall, weights: Any, context: Any) -> Any:
    form = jax.ShapeDtypeStruct((call.dim,), weights.dtype)
    return dataclasses.replace(call, method="mean").one(form, weights, context)


def _backward(call: TorchCall, kept: Any, cotangent: Any) -> Any:
    form = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in kept)
    return dataclasses.replace(call, method="pullback").one(form, *kept, cotangent)


_torch_mean.defvjp(lambda call, *given: (_torch_mean(call, *given), given), _backward)


class TorchModel(GaussianModel):
    """A mean ``μ = f_θ(x)`` by a network of PyTorch; θ is one array."""

    call: TorchCall = eqx.field(static=True)
    calls_python = True

    def init(self, key: Key) -> Float[Array, " n"]:
        size = sum(parameter.numel() for parameter in self.call.module.parameters())
        form = jax.ShapeDtypeStruct((size,), jnp.result_type(float))
        return dataclasses.replace(self.call, method="init").one(form, jax.random.bits(key, (), jnp.uint32))

    def mean(self, params: Float[Array, " n"], context: Context) -> Cost:
        return _torch_mean(self.call, params, context.astype(params.dtype)).astype(float)


class Torch(FactorySpec, PointModelSpec):
    """A network of PyTorch as the mean of a Gaussian model; for feature rows the same network on each row.

    It computes in double precision and in evaluation mode; dropout is off and running statistics are constant.

    Parameters
    ----------
    make : callable, or where it is as "module:name"
        Called with the numbers of inputs and outputs, and with the settings that a subclass adds as keyword arguments.
        It returns a ``torch.nn.Module`` that is called with rows of inputs.

    Examples
    --------
    >>> import regretless as rg
    >>> def network(inputs, outputs):
    ...     from torch import nn
    ...     return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))
    >>> rg.policies.DFHPG(model=rg.models.Torch(make=network))
    rg.policies.DFHPG(model=rg.models.Torch(make=network))
    """

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> TorchModel:
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ."""
        extras.require("torch", extra="torch")

        call = TorchCall(self, dim, context_shape)
        made = lambda: dataclasses.replace(call, module=call.create(0))  # noqa: E731
        return _tried(self, lambda: TorchModel(dim, context_shape, number(scale), made()), dim, context_shape)
