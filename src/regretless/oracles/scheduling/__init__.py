"""Energy-aware scheduling, exactly and without a licence: separate tasks, first-fit packing, HiGHS where that fails."""
