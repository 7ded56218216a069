"""Warnings that somebody may want to filter, or to make errors of."""


class WeakPrivacyWarning(UserWarning):
    """The guarantee is weak: epsilon is above 10, or delta is above 1/100 or above one over the number of rows."""


class IdentifierWarning(UserWarning):
    """A column of a data frame is named like an identifier, and is used like any other number."""


class UselessPlanWarning(UserWarning):
    """The predicted error is too large for a useful result; the message says how many rows are needed."""


class AbstentionWarning(UserWarning):
    """The private step abstained: the fitted subspace is a placeholder that does not depend on the data."""


class NotPrivateWarning(UserWarning):
    """A seed was given: the noise can be reproduced, so the result is not private."""


class TransformedRowsWarning(NotPrivateWarning):
    """Transformed rows were passed on. They are not private, and neither is a model fitted to them."""
