"""
Regions of ancestry, one picture each
=====================================

The scores of 2,504 people of the 1000 Genomes project on two private components, counted by region. One histogram
covers all regions, so the maps by region cost no more than one map of everybody. The list of regions is public. Which
region a person belongs to is not.
"""

# %%
# First the components, then the map by region. Each gets half of the budget.
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
# Maps of all people and of each region. The number of people in a region is estimated from its noisy counts.
figure = ps.plot.score_maps(picture)
print({region: picture.of(region).n for region in regions})
