"""
Regions of ancestry, one picture each
=====================================

Scores of 2,504 people of the 1000 Genomes on two private components, counted by region: one histogram for all of
them, so that regions cost nothing beyond the map of all. Which regions there are is public; whose is which is not.
"""

# %%
# Components first, then the map by region, on half of the budget each.
import privspan as ps
from privspan.datasets import load

table = load("ancestry")
model = ps.PrivatePCA(2, epsilon=1.5, delta=5e-7, bounds=(0, 2)).fit(table.values)
regions = ["AFR", "AMR", "EAS", "EUR", "SAS"]
picture = ps.private_score_map(
    table.values, model.release_, classes=table.labels, labels=regions, epsilon=1.5, delta=5e-7
)
print(picture)

# %%
# All people, and those of each region. The number of people of a region is estimated from its counts.
figure = ps.plot.score_maps(picture)
print({region: picture.of(region).n for region in regions})
