"""The pages, one file each: `start`, the five steps of a release, the release itself, what comes next."""
