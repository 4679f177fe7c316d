"""Docstrings here say `Example:`; Griffe, which shows its code as code, wants `Examples:`."""

import re
from typing import Any

import griffe


class ExamplesSection(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.M
            )
