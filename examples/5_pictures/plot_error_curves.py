"""
What would more people, or a larger ε, do?
==========================================

A plan predicts the error from public numbers alone, before any budget is spent. Its curves answer these two
questions.
"""

# %%
# 2,000 people, 40 columns, 3 components. The line is the median; the band reaches to the 90th percentile.
import privspan as ps

plan = ps.plan(2_000, 40, 3, epsilon=1.0, delta=1e-6, center=True)
print(plan)
ps.plot.error_against_rows(plan, wanted=0.1)

# %%
ps.plot.error_against_epsilon(plan, wanted=0.1)

# %%
# All methods in one figure. A line is dotted where the method would often abstain.
ps.plot.error_against_rows(plan, alternatives=True)
