"""Names that settings can have, and what the reward model calls those it is made with."""

MODES = ("labels", "skills", "regression")
ON_POLICY = ("ppo", "a2c", "recurrent-ppo")
OFF_POLICY = ("dqn", "sac", "td3")
OF_RLLIB = ("ppo", "recurrent-ppo", "appo", "recurrent-appo")
ENGINES = {"sb3": (*ON_POLICY, *OFF_POLICY), "rllib": OF_RLLIB}
"""Which agents each has."""

AGENTS = tuple(dict.fromkeys((*ENGINES["sb3"], *ENGINES["rllib"])))
JUDGES = ("trajectory", "state", "final")
PAYMENTS = ("end", "differences", "steps", "environment")
OBSERVED = ("raw", "standardised", "inputs", "belief")
BONUSES = ("disagreement", "visits")
DENSITIES = ("normal", "bins")
WIDEST, DEEPEST = 65_536, 64
"""Units of a layer, and layers, at most."""
OF_REWARD_MODEL = {
    "mode": "mode",
    "judge": "judge",
    "pay": "pay",
    "reward": "reward",
    "reward_unit": "reward_unit",
    "epsilon": "epsilon",
    "beta_nll": "beta_nll",
    "prior": "prior",
    "ensemble_size": "ensemble",
    "bonus_weight": "bonus",
    "bonus": "bonus_for",
    "bonus_kind": "bonus_kind",
    "bucket": "bucket",
    "discriminator_width": "width",
    "discriminator_core": "core",
    "pixels": "pixels",
    "frequencies": "frequencies",
    "discriminator_learning_rate": "learning_rate",
    "discriminator_batch_size": "batch_size",
    "samples_per_episode": "samples_per_episode",
    "store": "store",
    "held_out": "held_out",
    "warm_up": "warm_up",
    "varying_length": "varying_length",
    "seed": "seed",
}
"""Settings here, and what the reward model calls them."""
