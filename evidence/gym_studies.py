"""The studies of environments that are not ours: rewards side by side, and peers' rows."""

FIVE = "clipped-linear,clipped-log,linear,log,accuracy"
PERCEPTION = "gym --preset perception"
LOCALISATION = "gym --preset localisation"
CHEETAH = "gym --preset half-cheetah"
DIAYN = (
    "--rewards log --reward-unit absolute --judge state --pay steps --bonus-weight 0 "
    "--discount 0.99"
)
LIDAR = (
    "gym --preset lidar --env fast_lidar:FastLIDARLocMazeStatic-v0 --steps 51200 "
    "--evaluate-every 51200 --checkpoint-every 51200"
)
BEFORE = (
    "--steps 80000 --checkpoint-every 80000 --evaluate-every 40000 --evaluate-episodes 256 "
    "--beta-nll 0 --discriminator-width 128 --discriminator-learning-rate 0.001 "
    "--discriminator-schedule constant --batch-size 256 --n-epochs 5 --log-std -1.0 "
    "--epsilon 0.25 --ensemble-size 1 --discount 0.99 --lambda 0.9 --value-coef 0.5"
)
"""What the preset was first."""

# Name -> title, what it is, flags of `irrl compare`, hours on two cores.
GYM_STUDIES = {
    "gym-circle-square": (
        "Somebody else's environment: CircleSquare of ap_gym, five rewards",
        "A circle or a square in 28 x 28 pixels, seen through 5 x 5. Stock PPO of "
        "Stable-Baselines3 with a reward model for trajectories, 250,000 steps. The environment "
        "scores the last of the predictions that are handed to it (after 16 glimpses) by itself.",
        f"{PERCEPTION} --rewards {FIVE} --seeds 5",
        0.3,
    ),
    "gym-circle-square-own-reward": (
        "The peer in the same trainer: CircleSquare's own reward",
        "The same agent, paid by the environment: minus the loss of the prediction at every step. "
        "The discriminator learns as before and makes the predictions, but pays nothing.",
        f"{PERCEPTION} --rewards clipped-linear --pay environment --seeds 5",
        0.1,
    ),
    "gym-circle-square-standardised": (
        "CircleSquare: each pixel standardised by itself",
        "What the discriminator and the policy see: pixels less their mean over all that was seen, "
        "in standard deviations, in place of deviations from the mean of each glimpse.",
        f"{PERCEPTION} --rewards clipped-linear --pixels standardised --seeds 5",
        0.1,
    ),
    "gym-circle-square-raw": (
        "CircleSquare: raw pixels",
        "The same with pixels as they are.",
        f"{PERCEPTION} --rewards clipped-linear --pixels raw --seeds 5",
        0.1,
    ),
    "gym-circle-square-by-hand": (
        "CircleSquare: a feature made by hand",
        "Raw pixels, and beside them the glimpse less its mean, times ten: what the prototype "
        "had. `PYTHONPATH=evidence` for the environment that adds it.",
        f"{PERCEPTION} --rewards clipped-linear --pixels raw --env by_hand:ByHand-v0 --seeds 5",
        0.1,
    ),
    "gym-light-dark": (
        "Labels that are numbers: LightDark of ap_gym",
        "An agent in the plane sees its place through noise that is weakest near a light; the "
        "label is its place at each step. PPO of Stable-Baselines3 sees what the discriminator "
        "believes, a normal density by a GRU, and is paid for it at every step. Squared errors in "
        "prior variances: a blind guess has 1, a particle filter that walks to the light 0.0093.",
        f"{LOCALISATION} --rewards ball --seeds 10",
        0.3,
    ),
    "gym-light-dark-own-reward": (
        "The peer in the same trainer: LightDark's own reward",
        "The same agent, paid by the environment: 1 less the squared error of the prediction, "
        "less a small cost of moving, at every step. The discriminator learns as before and makes "
        "the predictions, but pays nothing.",
        f"{LOCALISATION} --rewards ball --pay environment --seeds 10",
        0.3,
    ),
    "gym-light-dark-before": (
        "LightDark before the discriminator learned by weighted losses: two rewards of densities",
        "The preset as it was first: 80,000 steps, a wider discriminator that learns by the plain "
        "likelihood with a constant step size, smaller steps of the policy.",
        f"{LOCALISATION} {BEFORE} --rewards ball,crps --seeds 5",
        0.2,
    ),
    "gym-light-dark-own-reward-before": (
        "LightDark before, its own reward",
        "The peer in that trainer.",
        f"{LOCALISATION} {BEFORE} --rewards ball --pay environment --seeds 5",
        0.1,
    ),
    "gym-lidar": (
        "Labels that are numbers: LIDARLocMazeStatic of ap_gym",
        "An agent in a maze, always the same, feels the walls around it by eight rays and knows "
        "how far it has gone; the label is its place at each step. `PYTHONPATH=evidence` for "
        "ap_gym's environment with a faster search for walls, six times as many steps in a second. "
        "51,200 steps, two fifths of the preset's. A blind guess has about 0.78.",
        f"{LIDAR} --rewards ball --seeds 5",
        0.2,
    ),
    "gym-lidar-own-reward": (
        "The peer in the same trainer: LIDARLocMazeStatic's own reward",
        "The same agent, paid by the environment: 0.1 less the squared error of the prediction, "
        "less a small cost of moving, at every step.",
        f"{LIDAR} --rewards ball --pay environment --seeds 5",
        0.2,
    ),
    "gym-point-mass": (
        "Skills of a point mass, 32 codes",
        "PPO of Stable-Baselines3 with a reward model for final states; a million steps, "
        "with a constant step size.",
        "gym --rewards clipped-linear,clipped-log,accuracy --schedule constant --seeds 5",
        0.2,
    ),
    "gym-point-mass-128": (
        "Skills of a point mass, 128 codes",
        "The same with four times as many codes, for two million steps, with a step size that "
        "falls to zero.",
        "gym --rewards clipped-linear --codes 128 --steps 2000000 "
        "--evaluate-episodes 512 --seeds 3",
        0.1,
    ),
    "gym-point-mass-cosine": (
        "Skills of a point mass, 32 codes, with a step size that falls to zero",
        "The `fast` preset, a cosine schedule in place of the constant one above: most of what is "
        "missing there is the noise of a constant step size.",
        "gym --rewards clipped-linear --seeds 5",
        0.1,
    ),
    "gym-four-rooms": (
        "Four rooms with networks in place of tables",
        "The `four-rooms` preset: 128 codes, 20 steps, PPO. With tables of Q values the clipped "
        "linear reward learns ~90 skills.",
        "gym --preset four-rooms --rewards clipped-linear,clipped-log --seeds 3",
        0.2,
    ),
    "gym-four-rooms-cosine": (
        "Four rooms with networks, with a step size that falls to zero",
        "The same with a cosine schedule.",
        "gym --preset four-rooms --rewards clipped-linear --schedule cosine --seeds 2",
        0.1,
    ),
    "gym-half-cheetah": (
        "Skills of MuJoCo's HalfCheetah, 8 codes",
        "The preset `half-cheetah`: told by where an episode ends along the track, after 25 "
        "actions of a fifth of a second. Bonus and reward are in units of the largest reward, so "
        "that both rewards have the same share of bonus. Deterministic policies; buckets of a "
        "metre that one episode of each skill touches, and how far from the start these episodes "
        "end in the mean.",
        f"{CHEETAH} --rewards clipped-linear,clipped-log --seeds 3",
        0.2,
    ),
    "gym-half-cheetah-diayn": (
        "HalfCheetah, DIAYN in the same trainer",
        "The unclipped log at every state, no bonus.",
        f"{CHEETAH} {DIAYN} --seeds 3",
        0.1,
    ),
    "gym-half-cheetah-alike": (
        "HalfCheetah, codes that act alike at the start",
        "The last layer of the policy a hundred times smaller, as Stable-Baselines3 makes it.",
        f"{CHEETAH} --rewards clipped-linear --action-gain 0.01 --seeds 2",
        0.1,
    ),
    "gym-half-cheetah-raw": (
        "HalfCheetah, observations as they are",
        "The policy sees numbers as MuJoCo gives them, not in standard deviations.",
        f"{CHEETAH} --rewards clipped-linear --observe raw --seeds 2",
        0.1,
    ),
}
