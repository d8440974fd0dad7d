"""Generated maps, and the format of the published ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from regretless.benchmarks.maps import TERRAIN_COSTS, draw_terrain
from regretless.errors import SettingsError


def test_every_kind_of_terrain_has_its_share_and_regions_are_connected():
    terrain = np.asarray(jax.vmap(lambda key: draw_terrain(key, 10))(jax.random.split(jax.random.key(0), 50)))
    assert np.bincount(terrain.reshape(-1)).tolist() == [1000] * 5
    alike = np.mean(terrain[:, 1:] == terrain[:, :-1])
    assert alike > 0.5, "one fifth, if neighbours were independent"


def test_images_and_tiles_are_the_same_maps():
    image, tiles = (rg.benchmarks.GridMap(context=context).build() for context in ("image", "tiles"))
    key = jax.random.key(3)
    played = image.round(key, None, jnp.int32(1))
    seen = np.asarray(image.context(None, played.observation))
    assert seen.shape == image.context_shape == (18, 18, 3)
    rows = np.asarray(tiles.context(None, tiles.round(key, None, jnp.int32(1)).observation))
    assert rows.shape == tiles.context_shape == (36, 7)
    np.testing.assert_allclose(rows[7, :3], seen[3:6, 3:6].mean(axis=(0, 1)), rtol=1e-5)
    np.testing.assert_allclose(rows[7, 3:6], seen[3:6, 3:6].std(axis=(0, 1)), rtol=1e-4)
    assert set(np.unique(played.mean)) == set(np.float32(TERRAIN_COSTS))
    assert np.all(np.abs(played.cost / played.mean - 1) <= 0.2 + 1e-6)


class Brightness:
    """Bright tiles are expensive."""

    def __init__(self, problem, seed):
        self.size = 6

    def decide(self, context):
        assert context.shape == (18, 18, 3)
        return context.reshape(6, 3, 6, 3, 3).mean(axis=(1, 3, 4)).reshape(-1)

    def update(self, decision, feedback):
        self.size += 0


def test_policies_that_take_images_play_and_others_refuse_them():
    world = rg.benchmarks.GridMap(context="image")
    result = rg.simulate(rg.policies.Unscaled(rg.policies.Python(make=Brightness)), world, seeds=1, horizon=3)
    assert result.regret.shape == (1, 3)
    with pytest.raises(SettingsError, match=r"expects contexts of shape \(p,\) or \(36, p\), got \(18, 18, 3\)"):
        rg.simulate(rg.policies.LinearThompson(), world, seeds=1, horizon=3)


@pytest.fixture
def folder(tmp_path):
    """Five maps of 3 × 4 nodes with tiles of 2 × 2 pixels, as the published files hold them."""
    rng = np.random.default_rng(0)
    weights = rng.choice(TERRAIN_COSTS, size=(5, 3, 4)).astype(np.float16)
    images = np.repeat(np.repeat((weights * 25).astype(np.uint8), 2, axis=1), 2, axis=2)
    np.save(tmp_path / "train_maps.npy", np.stack([images] * 3, axis=3))
    np.save(tmp_path / "train_vertex_weights.npy", weights)
    paths = rg.oracles.node_grid(3, 4).answer(weights.reshape(5, 12).astype(float)).w
    np.save(tmp_path / "train_shortest_paths.npy", paths.reshape(5, 3, 4).astype(np.uint8))
    return tmp_path


def test_reads_the_published_format(folder):
    maps = rg.benchmarks.read_warcraft(folder)
    assert maps.images.shape == (5, 6, 8, 3)
    assert 0 <= maps.images.min() <= maps.images.max() <= 1
    assert np.array_equal(maps.paths, maps.oracle.answer(maps.costs).w)
    assert maps.tiles().shape == (5, 12, 7)
    np.testing.assert_allclose(maps.tiles()[..., 0], np.floor(maps.costs * 25) / 255, atol=0.005)
    assert len(rg.benchmarks.read_warcraft(folder, limit=2).costs) == 2
    history = rg.benchmarks.from_arrays(maps.tiles(), maps.costs, maps.oracle)
    assert history.context_shape == (12, 7)
    images = rg.benchmarks.from_arrays(maps.images, maps.costs, maps.oracle)
    assert images.problem().context_shape == (6, 8, 3)


def test_refuses_files_that_are_missing_or_do_not_fit(folder):
    with pytest.raises(SettingsError, match=r"expected an array of numbers in .*val_maps.npy, got: "):
        rg.benchmarks.read_warcraft(folder, "val")
    np.save(folder / "train_vertex_weights.npy", np.ones((5, 5, 4)))
    with pytest.raises(SettingsError, match="with whole tiles"):
        rg.benchmarks.read_warcraft(folder)
    (folder / "train_maps.npy").write_bytes(b"nothing")
    with pytest.raises(SettingsError, match="expected an array of numbers"):
        rg.benchmarks.read_warcraft(folder)
