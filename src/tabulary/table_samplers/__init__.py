"""The law of a table given its people, their priors and its released numbers: computed, or sampled."""
