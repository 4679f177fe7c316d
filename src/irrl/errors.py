"""The one exception that the command line shows as a single line."""


class UserError(ValueError):
    """Something the user asked for cannot be done; the message says what to do instead."""
