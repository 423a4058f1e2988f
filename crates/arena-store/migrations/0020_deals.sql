-- Finds the sessions of the deal of a day, which are unlisted. Other sessions have no entry.
CREATE INDEX sessions_deal ON sessions (seed) WHERE unlisted = 1;
