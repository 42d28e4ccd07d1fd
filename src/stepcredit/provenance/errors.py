"""Errors that are the user's to mend."""


class UserError(ValueError):
    """Something outside the code is wrong: the message says what, where, and what to do."""
