"""``privspan app``: a private PCA in the browser, on this machine, for people who do not write code.

A page per step, from a file to a report.  The app computes nothing of its own on the rows: once a person has
confirmed, it runs ``privspan fit`` with what was answered, and shows the command.  Before that its pages are
functions of names, declared types, the number of rows (or persons) and the answers: docs/explanation/app.md.

`server` puts it together and listens, `guard` lets nobody else in, `folder` decides which files can be reached,
`facts` what of a table is shown, `commands` what is run and `runs` that it is run once.  A file in `pages` per step.
"""
