"""Grid maps seen as images: generated maps with kinds of terrain, and a reader of the published Warcraft files."""

from pathlib import Path
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.errors import SettingsError
from regretless.oracles.base import check_finite
from regretless.oracles.terrain import NodeGridOracle
from regretless.spec import number
from regretless.types import Context, Key

TERRAIN_COSTS = (0.8, 1.2, 5.3, 7.7, 9.2)
"""Costs of the kinds of terrain, those of the Warcraft maps."""

TERRAIN_COLOURS = ((0.25, 0.6, 0.2), (0.6, 0.45, 0.25), (0.1, 0.3, 0.1), (0.45, 0.45, 0.45), (0.1, 0.2, 0.6))
"""Red, green and blue of the kinds of terrain."""

WAVES = 6
"""Plane waves whose sum is the height of a map; equal shares of the heights are kinds of terrain."""


class GridMap(BenchmarkSpec):
    """Cross a map of terrain, from corner to corner with steps to eight neighbours; costs are those of the nodes.

    Heights are sums of plane waves, and equal shares of them are five kinds of terrain with costs 0.8, 1.2, 5.3, 7.7
    and 9.2, times a random factor for each node. The map is seen as an image: tiles in the colour of their terrain,
    with a brightness for each map and noise for each pixel.

    Parameters
    ----------
    side : int, default 6
        Nodes of a side of the map.
    pixels : int, default 3
        Pixels of a side of a tile.
    pixel_noise : float, default 0.1
        Standard deviation of the noise of a pixel; colours are between 0 and 1.
    noise_width : float, default 0.2
        Half the width of the random factor of the costs.
    context : {"tiles", "image"}
        Policies see a row for each tile, its mean colour, deviations of the colours and a 1, or the image of shape
        ``(side · pixels, side · pixels, 3)``, for models that take images.
    """

    side: int = Field(default=6, ge=2, le=200)
    pixels: int = Field(default=3, ge=1, le=64)
    pixel_noise: float = Field(default=0.1, ge=0, le=1)
    noise_width: float = Field(default=0.2, ge=0, le=1)
    context: Literal["tiles", "image"] = "tiles"

    def build(self) -> "GridMapBenchmark":
        """Return the benchmark."""
        return GridMapBenchmark(self)


class GridMapBenchmark(Benchmark):
    """The stream of ``GridMap``."""

    settings: GridMap = eqx.field(static=True)  # but for the size of the noise
    pixel_noise: Float[Array, ""]
    noise_width: Float[Array, ""]

    def __init__(self, settings: GridMap):
        size = settings.side * settings.pixels
        self.name, self.horizon, self.regret_on_mean = "grid_map", 2000, False
        self.oracle = NodeGridOracle(settings.side, settings.side)
        self.context_shape = (size, size, 3) if settings.context == "image" else (settings.side**2, TILE_FEATURES)
        self.pixel_noise, self.noise_width = number(settings.pixel_noise), number(settings.noise_width)
        self.settings = settings.replace(pixel_noise=0.0, noise_width=0.0)

    def environment(self, key: Key) -> None:
        """Return None: colours and costs of the terrain are the same in every replication.

        Parameters
        ----------
        key : Key
            Not used.
        """

    def round(self, key: Key, environment: None, t: Int[Array, ""]) -> Round:
        terrain_key, image_key, light_key, noise_key = jax.random.split(key, 4)
        terrain = draw_terrain(terrain_key, self.settings.side)
        dtype = jnp.result_type(float)
        tiles = jnp.asarray(TERRAIN_COLOURS, dtype)[terrain] * draws.uniform(light_key, (), 0.8, 1.2)
        image = jnp.repeat(jnp.repeat(tiles, self.settings.pixels, axis=0), self.settings.pixels, axis=1)
        image = image + self.pixel_noise * draws.normal(image_key, image.shape)
        mean = jnp.asarray(TERRAIN_COSTS, dtype)[terrain].reshape(-1)
        factor = draws.uniform(noise_key, mean.shape, 1.0 - self.noise_width, 1.0 + self.noise_width)
        return Round(jnp.clip(image, 0.0, 1.0), mean * factor, mean)

    def context(self, environment: None, observation: Float[Array, "h w 3"]) -> Context:
        if self.settings.context == "image":
            return observation
        return jnp.asarray(tile_features(observation, self.settings.side, self.settings.side))


TILE_FEATURES = 7
"""Mean and standard deviation of three colours, and a 1."""


def draw_terrain(key: Key, side: int) -> Int[Array, "side side"]:
    """Return kinds of terrain from 0 to 4, each on a fifth of the nodes, in connected regions.

    Parameters
    ----------
    key : Key
        For the random draws.
    side : int
        Nodes of a side of the map.
    """
    direction_key, phase_key = jax.random.split(key)
    direction = draws.normal(direction_key, (WAVES, 2)) * 4.0 / side
    phase = draws.uniform(phase_key, (WAVES,), 0.0, 2.0 * np.pi)
    place = jnp.stack(jnp.meshgrid(jnp.arange(side), jnp.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    height = jnp.sum(jnp.cos(jnp.sum(place[:, None, :] * direction, axis=2) + phase), axis=1)
    rank = jnp.argsort(jnp.argsort(height))
    return (rank * len(TERRAIN_COSTS) // side**2).reshape(side, side)


def tile_features(image: Array | np.ndarray, rows: int, columns: int) -> Array:
    """Return a row for each tile of an image: mean and standard deviation of its colours, and a 1.

    Parameters
    ----------
    image : array of shape (height, width, 3)
        An image whose height and width are multiples of ``rows`` and ``columns``.
    rows, columns : int
        Number of tiles from top to bottom and from left to right.
    """
    pixels = jnp.asarray(image)
    height, width, colours = pixels.shape
    tiles = pixels.reshape(rows, height // rows, columns, width // columns, colours)
    tiles = jnp.moveaxis(tiles, 1, 2).reshape(rows * columns, -1, colours)
    return jnp.concatenate([tiles.mean(axis=1), tiles.std(axis=1), jnp.ones((len(tiles), 1), tiles.dtype)], axis=1)


class Maps(NamedTuple):
    """Maps as images, with the costs of their nodes and their shortest paths.

    Parameters
    ----------
    images : array of shape (n, height, width, 3)
        Colours between 0 and 1.
    costs : array of shape (n, rows · columns)
        Costs of the nodes, row by row.
    paths : array of shape (n, rows · columns)
        The published paths: 1 on each node of the path.
    oracle : NodeGridOracle
        The feasible set.
    """

    images: np.ndarray
    costs: np.ndarray
    paths: np.ndarray
    oracle: NodeGridOracle

    def tiles(self) -> np.ndarray:
        """Return contexts of shape ``(n, rows · columns, 7)``, a row for each tile, for linear models."""
        features = jax.vmap(lambda image: tile_features(image, self.oracle.rows, self.oracle.columns))
        return np.asarray(features(self.images), np.float64)


def read_warcraft(
    folder: str | Path, split: Literal["train", "val", "test"] = "train", limit: int | None = None
) -> Maps:
    """Return the Warcraft maps of Vlastelica et al. (2020) from the folder of one size, such as ``12x12``.

    The folder has ``train_maps.npy`` (images), ``train_vertex_weights.npy`` and ``train_shortest_paths.npy``, or the
    same with ``val`` and ``test``. Nothing is downloaded.

    Parameters
    ----------
    folder : path
        Where the files are.
    split : {"train", "val", "test"}
        Which of them to read.
    limit : int, optional
        Read at most this many maps.

    Raises
    ------
    SettingsError
        If a file is missing or the files do not fit together.

    Examples
    --------
    >>> maps = read_warcraft("warcraft_shortest_path_oneskin/12x12")  # doctest: +SKIP
    >>> data = rg.offline.Dataset(maps.tiles(), maps.costs, maps.oracle)  # doctest: +SKIP
    """
    parts = []
    for part in ("maps", "vertex_weights", "shortest_paths"):
        path = Path(folder) / f"{split}_{part}.npy"
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise SettingsError(f"Warcraft maps: expected an array of numbers in {path}, got: {error}") from None
        parts.append(check_finite(path.name, array[:limit]))
    images, weights, paths = parts
    count, fits = len(images), weights.ndim == 3 and paths.shape == weights.shape and images.ndim == 4
    fits = fits and len(weights) == count and images.shape[3] == 3
    if not fits or images.shape[1] % weights.shape[1] or images.shape[2] % weights.shape[2]:
        raise SettingsError(
            "Warcraft maps: expected images (n, height, width, 3), weights and paths (n, rows, columns) with whole "
            f"tiles, got {images.shape}, {weights.shape} and {paths.shape}"
        )
    bright = images.astype(np.float64) / (255.0 if images.dtype.kind in "ui" else 1.0)
    costs, marks = (part.reshape(count, -1).astype(np.float64) for part in (weights, paths))
    return Maps(bright, costs, marks, NodeGridOracle(*weights.shape[1:]))
