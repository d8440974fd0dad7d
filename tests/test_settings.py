import pytest

from regretless.errors import SettingsError
from regretless.registry import require_known
from regretless.settings import Settings


def test_unknown_keys_and_values_out_of_range_are_refused_with_what_was_expected():
    with pytest.raises(SettingsError, match="unknown setting 'polcy_lr'; did you mean 'policy_lr'"):
        Settings.checked(polcy_lr=0.1)
    with pytest.raises(SettingsError, match="'policy_lr': Input should be greater than 0, got -1"):
        Settings.checked(policy_lr=-1)
    with pytest.raises(SettingsError, match="'exploration_scale': Input should be a finite number, got 'nan'"):
        Settings.checked(exploration_scale="nan")
    with pytest.raises(SettingsError, match=r"expected alpha_min ≤ alpha_max, got 0\.5 and 0\.1"):
        Settings.checked(alpha_min=0.5, alpha_max=0.1)
    with pytest.raises(SettingsError, match="'alpha_gate': Input should be 'warmup' or 'exponential', got 'sudden'"):
        Settings.checked(alpha_gate="sudden")


def test_updating_checks_again_and_keeps_the_rest():
    base = Settings(policy_lr=0.3)
    assert base.updated(alpha_max="0.7").alpha_max == 0.7
    assert base.updated(alpha_max=0.7).policy_lr == 0.3
    with pytest.raises(SettingsError, match="alpha_max"):
        base.updated(alpha_max=2.0)


def test_names_without_a_near_one_list_the_choices():
    with pytest.raises(SettingsError, match="unknown policy 'zzz'; choose from dfhpg, greedy"):
        require_known("policy", "zzz", ["greedy", "dfhpg"])
