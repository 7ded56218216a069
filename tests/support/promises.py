"""What a private PCA promises from public facts, beside what its release then costs."""

from privspan.pca import PCASettings, check_pca, learn_pca
from privspan.privacy.call import Call


def promised_and_paid(X, **options):
    """Return what is promised beforehand, and what the release then costs: mu and the delta that is set aside."""
    settings = PCASettings(**({"k": 2} | options))
    with Call("private_pca", 1.0, 1e-6, 0) as call:
        promised = check_pca(settings, call, X)
    with Call("private_pca", 1.0, 1e-6, 0) as call:
        cost = learn_pca(settings, call, X)[0].cost
    return promised, (cost.mu, cost.delta_aside)
