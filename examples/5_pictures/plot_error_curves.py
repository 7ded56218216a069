"""
What would more people, or a larger ε, do?
==========================================

A plan predicts the error from public numbers alone, before any budget is spent. Its curves answer the two questions
that everybody asks.
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
# Every method beside the others; dotted where it would often give no answer.
ps.plot.error_against_rows(plan, alternatives=True)
