"""The authors' numbers of skill discovery: skills learned.

Most were read off their published figure, to 2 skills; a number stands for a range as wide as that.
"""

from irrl.tasks.contract import Anchor, Published

PUBLISHED = Published(
    length="20 to 30 million iterations",
    numbers={
        "clipped-linear": Anchor("85-90", 85.0, 90.0),
        "clipped-log": Anchor("~31", 29.0, 33.0),
        "linear": Anchor("about 23 below clipped", 62.0, 67.0, "their text"),
        "accuracy": Anchor("~40", 38.0, 42.0),
        "disdain": Anchor("87-93", 87.0, 93.0),
    },
)
