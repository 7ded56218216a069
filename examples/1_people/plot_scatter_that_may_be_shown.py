"""
What may I show instead of a scatter plot?
==========================================

After a PCA everybody wants to see the scores, one point per person. That picture must not be published. A *map* of
the scores may be: the number of people in each cell of a grid, with noise.
"""

# %%
# The table has 2,504 people of the 1000 Genomes project. The components have one budget and the map another.
# Together they cost at most the sum.
import matplotlib.pyplot as plt

import privspan as ps

people = ps.datasets.load("ancestry")
model = ps.PrivatePCA(2, epsilon=2.0, delta=1e-6, bounds=(0, 2)).fit(people.values)
scores = ps.private_score_map(people.values, model, epsilon=2.0, delta=1e-6)
print("components:", model.release_.cost)
print("map:       ", scores.cost)

# %%
# The left plot must stay private, the right one may be published. It shows the groups but not the people.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
left.scatter(*model.transform(people.values).T, s=4, alpha=0.4, color="0.3")
left.set(title="scores: one point per person", xlabel="component 1", ylabel="component 2")
ps.plot.score_map(scores, ax=right)
left.set(xlim=right.get_xlim(), ylim=right.get_ylim())
plt.show()
