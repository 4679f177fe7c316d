"""The studies behind `results/`: which runs each has, and what its table shows."""

from pathlib import Path

from gym_studies import GYM_STUDIES
from study import Study

from irrl.tasks import find_task

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"

ALL = "clipped-linear,clipped-log,linear,accuracy,disdain"
THREE = "clipped-linear,clipped-log,accuracy"
TWO = "clipped-linear,clipped-log"
"""Those of them that have a gradient to leak."""
LEAK = "--leak-reward-gradient yes"
ORACLE_RUN = "runs/results/digits-judge/clipped-linear/seed-0"
FAST = "runs/results/digits-ram-fast/clipped-linear/seed-0"
FAST_DT = "runs/results/digits-dt-ram-fast/clipped-linear/seed-0"
G_FUNCTIONS = (
    "clipped-log,clipped-root-4,clipped-root-2,clipped-log1p,clipped-linear,clipped-exp,"
    "clipped-power-2,clipped-power-3,clipped-power-4,clipped-power-6"
)
LOOKING_TWICE = "--inhibition 0 --entropy-coef 0 --centre-forgets no"
"""What makes `fast` what it was before these three."""
REWARDED_AT_THE_END = "--credit final --discount 1 --lambda 1 --policy-warmup-epochs 0"
"""Digits rewarded as in the paper: once, after the last glimpse, from the first update on."""
GAUSSIAN = (
    "--grid 0 --equivariant no --inhibition 0 --entropy-coef 0 --location-std 0.15 "
    "--location-std-end 0.05"
)
"""The authors' kind of locator, with a std that finds digits in four epochs."""
AS_THE_PAPER = (
    f"{REWARDED_AT_THE_END} --supervision last --normalise-advantage none {GAUSSIAN} --parts 1"
)
"""Its losses and its kind of locator; of `fast` only what sees and remembers."""
COMPARED = f"--epochs 4 {AS_THE_PAPER}"


PUBLISHED = {
    variant: published
    for task in ("skills", "digits", "counting")
    for variant, published in find_task(task).published.items()
}
"""The authors' numbers, by task or, of digits, by model."""

RAM = PUBLISHED["ram"]


STUDIES = {
    "skills-fast": Study(
        "Five rewards",
        "The `fast` preset. The ceiling is 97.6 skills.",
        f"skills --rewards {ALL} --seeds 5",
    ),
    "skills-paper": Study(
        "The authors' set-up at full length",
        "40 million iterations with SGD 0.004, as the authors ran it, one seed: does `fast` stand "
        "for it?",
        "skills --preset paper --rewards clipped-linear,clipped-log,linear,accuracy --seeds 1",
        hours=0.5,
    ),
    "skills-visits": Study(
        "Beyond the paper: a bonus for rarely visited cells",
        "The `visits` preset: no ensemble, no random actions. A code is drawn to cells in which "
        "none ends yet. No posterior can do that: there the discriminator is ignorant, and every "
        "clipped reward about zero. The bonus is not new: one over the root of the visits to the "
        "final state, with a Q function of its own, is a baseline of DISDAIN's authors.",
        "skills --preset visits --rewards clipped-log --seeds 5",
    ),
    "skills-disdain-greedy": Study(
        "DISDAIN without random actions",
        "For a fair comparison with `visits`: random actions alone cost a skill or two.",
        "skills --rewards disdain --seeds 5 --epsilon 0",
    ),
    "skills-optimistic-log": Study(
        "Is it the shape, or the optimism? The clipped log with initial values of its own scale",
        "Q tables start uniform in [0, 1). That is optimistic beside a reward of at most 0.99, "
        "and pessimistic beside one of at most log 128 = 4.85. Here the clipped log starts in "
        "[0, 4.85), and most of its gap to the clipped linear reward is gone.",
        "skills --rewards clipped-log --seeds 5 --initial-value 4.852",
    ),
    "skills-pessimistic-linear": Study(
        "The converse: the clipped linear reward with initial values as small as the log's",
        "Here the clipped linear reward starts in [0, 0.206), as far below its range as [0, 1) is "
        "below that of the log. It does not mind; the log does.",
        "skills --rewards clipped-linear --seeds 5 --initial-value 0.206",
    ),
    "skills-small-map": Study(
        "The small map",
        "24 codes, 8 steps, 22 cells other than the start within reach: at most 21.4 skills.",
        f"skills --preset small-map --rewards {ALL} --seeds 5",
    ),
    "digits-ram": Study(
        "RAM on Cluttered MNIST: three rewards",
        "The paper's losses (cross-entropy after the last glimpse, the whole reward paid there, "
        "REINFORCE on it as it is) and its Gaussian locator, with what sees and remembers in "
        "`fast`. Four epochs: the discriminator is immature for most of them.",
        f"digits --rewards {THREE} {COMPARED} --checkpoint-every 1 --seeds 3",
        hours=0.2,
        epoch_by_epoch=True,
    ),
    "digits-ram-leak": Study(
        "RAM: the same with the leak of the authors' code",
        "Log and linear rewards carry a gradient into the discriminator, through REINFORCE and the "
        "baseline's loss; the 0/1 reward has none.",
        f"digits --rewards {TWO} {COMPARED} {LEAK} --seeds 3",
        hours=0.15,
        epoch_by_epoch=True,
    ),
    "digits-oracle": Study(
        "RAM paid by an oracle (reward hacking)",
        "The first of these studies once more, paid by the frozen discriminator of a run that was "
        "trained for longer. An oracle is frozen: nothing can leak.",
        f"digits --rewards {THREE} {COMPARED} --oracle {ORACLE_RUN} --seeds 3",
        hours=0.25,
        epoch_by_epoch=True,
    ),
    "digits-judge": Study(
        "The oracle",
        "16 epochs of the `fast` preset.",
        "digits --rewards clipped-linear --epochs 16 --parts 1 --seeds 1",
        hours=0.1,
    ),
    "digits-uniform": Study(
        "The same on digits that lie anywhere",
        "Trained and tested without the authors' bias in placing digits.",
        "digits --rewards clipped-linear --epochs 16 --parts 1 --placement uniform --seeds 1",
        hours=0.1,
    ),
    "digits-dt-ram": Study(
        "DT-RAM: three rewards",
        "The set-up of the first of these studies, for the model that decides when it has seen "
        "enough.",
        f"digits --model dt-ram --rewards {THREE} {COMPARED} --seeds 3",
        hours=0.2,
        epoch_by_epoch=True,
    ),
    "digits-dt-ram-leak": Study(
        "DT-RAM: the same with the leak of the authors' code",
        "As for RAM; six seeds, since three did not tell the two apart. Nor do six.",
        f"digits --model dt-ram --rewards {TWO} {COMPARED} {LEAK} --seeds 6",
        hours=0.3,
        epoch_by_epoch=True,
    ),
    "digits-dt-ram-leak-8": Study(
        "DT-RAM with the leak, twice as long",
        "Does the paper's order come with time? In the mean, not beyond chance.",
        f"digits --model dt-ram --rewards {TWO} --epochs 8 {AS_THE_PAPER} {LEAK} --seeds 3",
        hours=0.25,
        epoch_by_epoch=True,
    ),
    "digits-ram-now": Study(
        "RAM: three rewards, with the models of `fast`",
        "All of `fast`'s models, which choose among places, avoid those that were seen and hold "
        "the choice open; rewarded as in the paper. Two epochs.",
        f"digits --rewards {THREE} --epochs 2 {REWARDED_AT_THE_END} --seeds 3",
        hours=0.4,
        epoch_by_epoch=True,
    ),
    "digits-dt-ram-now": Study(
        "DT-RAM: three rewards, with the models of `fast`",
        "The same for DT-RAM, four epochs.",
        f"digits --model dt-ram --rewards {THREE} --epochs 4 {REWARDED_AT_THE_END} --seeds 3",
        hours=0.4,
        epoch_by_epoch=True,
    ),
    "digits-ram-paper": Study(
        "The authors' recipe: two rewards",
        "The `paper` preset, for the first 100 of its 1500 epochs. The authors' curves are 3 "
        "points apart by then, and 12 at 400 epochs.",
        f"digits --preset paper --rewards {TWO} --epochs 100 --parts 1 --seeds 1",
        hours=0.6,
    ),
    "digits-paper-leak": Study(
        "The authors' recipe, with the leak of their code",
        "The same 100 epochs of the `paper` preset, rewards not detached.",
        f"digits --preset paper --rewards {TWO} --epochs 100 --parts 1 {LEAK} --seeds 1",
        hours=0.6,
    ),
    "digits-paper-accuracy": Study(
        "The authors' recipe, paid 0 or 1",
        "The same 100 epochs once more.",
        "digits --preset paper --rewards accuracy --epochs 100 --parts 1 --seeds 1",
        hours=0.3,
    ),
    "digits-ram-fast": Study(
        "RAM, the whole `fast` preset",
        "100 epochs. Seed 0 is the one that settings were chosen by, seed 1 a fresh one. It is "
        "another model than the paper's, and it trains on fresh canvases in each epoch, the "
        "authors' on the same 54,000: there is no verdict beside their numbers.",
        "digits --rewards clipped-linear --seeds 2",
        hours=1.0,
    ),
    "digits-ram-fast-30": Study(
        "RAM, 30 epochs of `fast`: three rewards",
        "On fresh canvases in each epoch, as `fast` is.",
        f"digits --rewards {THREE} --epochs 30 --parts 1 --seeds 3",
        hours=1.4,
    ),
    "digits-ram-fast-fixed": Study(
        "RAM, 30 epochs of `fast` on fixed canvases",
        "The same on the authors' kind of data: 54,000 canvases, the same in each epoch.",
        "digits --rewards clipped-linear --epochs 30 --fresh-canvases no --parts 1 --seeds 3",
        hours=0.5,
    ),
    "digits-dt-ram-fast": Study(
        "DT-RAM, the `fast` preset",
        "60 epochs of the same for the model that decides when it has seen enough.",
        "digits --model dt-ram --rewards clipped-linear --epochs 60 --seeds 1",
        hours=0.7,
    ),
    "digits-ram-twice": Study(
        "RAM that may look twice, and makes up its mind early",
        "The first of these runs without what keeps it from places that were seen, without the "
        "entropy that holds its choice open, and with old light never forgotten: `fast` before.",
        f"digits --rewards clipped-linear --seeds 1 {LOOKING_TWICE}",
        hours=1.0,
    ),
    "digits-g": Study(
        "Ten g functions",
        "g(q) less g(p), clipped at zero, from the steepest near q = 0 to the flattest. Two epochs "
        "of the set-up in which rewards are compared above.",
        f"digits --rewards {G_FUNCTIONS} --epochs 2 {AS_THE_PAPER} --seeds 3",
        hours=0.3,
    ),
    "digits-paper": Study(
        "The authors' recipe",
        "The `paper` preset, for the first 200 of its 1500 epochs: does the code do what theirs "
        "did?",
        "digits --preset paper --rewards clipped-linear --epochs 200 --parts 1 --seeds 1",
        hours=0.7,
        along="ram",
    ),
    "counting": Study(
        "Counting under occlusion: three rewards and three scripted baselines",
        "The `fast` preset; 1,000 scenes that were not trained on. The scripted baselines learn to "
        "answer with the same network, but not where to go: stay answers from the first view, "
        "random turns or stops by chance, sweep walks six moves to the opposite side. An answer is "
        "well-founded if each cube to be counted was seen in some view taken.",
        f"counting --rewards {THREE} --seeds 3 --baselines stay,random,sweep "
        "--baseline-seeds 1 --parts 1",
        hours=1.5,
    ),
}
STUDIES |= {
    name: Study(title, text, flags, hours=hours)
    for name, (title, text, flags, hours) in GYM_STUDIES.items()
}
SCENES = ("data", "scenes", "--train", "20000", "--eval", "1000", "--resolution", "64")
"""What counting trains on, in the folder `scenes`."""
