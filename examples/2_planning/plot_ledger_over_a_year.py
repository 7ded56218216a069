"""
What may I still ask this year?
===============================

Every answer about the same people reveals more about them. A ledger on disk adds up the cost before the data are
read, and refuses what would exceed the limit. Here is a year of a survey with 10,000 people.
"""

# %%
# The limit is set once: ε = 2 and δ = 1e-5 for everything that is ever asked of these people.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import privspan as ps
from privspan.ledger import Ledger, OverspendError

people, _ = ps.datasets.spiked_subspace(10_000, 12, 3, gamma_w=0.3, rng=0)
folder = tempfile.TemporaryDirectory()
ledger = Ledger(Path(folder.name) / "budget.json")
limit = {"limit_epsilon": "2", "limit_delta": "1e-5"}


# %%
# A question is charged before it is answered. A refused question costs nothing, and the data are not read.
def ask(what: str, epsilon: str, k: int) -> str:
    try:
        with ledger.spending("survey", epsilon, "1e-6", what=what, **limit) as spending:
            release = ps.private_pca(people, k, epsilon=float(epsilon), delta=1e-6)
            spending.outcome = "abstained" if release.abstained else "finished"
    except OverspendError:
        return "refused"
    return release.headline


year = [("Jan", "0.5", 3), ("Mar", "0.25", 2), ("Apr", "0.25", 2), ("Jun", "0.5", 3), ("Sep", "0.25", 2)]
year += [("Oct", "0.5", 3), ("Nov", "0.25", 1), ("Dec", "0.25", 1)]
answers = {month: ask(f"private PCA, {month}", epsilon, k) for month, epsilon, k in year}
for month, answer in answers.items():
    print(f"{month}  {answer}")

# %%
# A refused month asked for more than was left. A later month may still get an answer if it asks for less. Only what
# the ledger allowed counts.
account = ledger.account("survey")
print("spent:", account.spent, " left:", account.left)

figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
height = 0.0
for place, (month, epsilon, _) in enumerate(year):
    asked, refused = float(epsilon), answers[month] == "refused"
    axes.bar(place, height, color="0.85")
    axes.bar(place, asked, bottom=height, color="none" if refused else "C0", edgecolor="C3" if refused else "C0")
    if refused:
        axes.annotate("refused", (place, height + asked), ha="center", va="bottom", color="C3")
    height += 0.0 if refused else asked
axes.axhline(2.0, color="0.3", lw=1.2, ls="--")
axes.annotate("limit", (-0.4, 2.0), va="bottom", color="0.3")
axes.set(xticks=np.arange(len(year)), xticklabels=[month for month, *_ in year], ylabel="ε spent", ylim=(0, 2.9))
plt.show()
folder.cleanup()
