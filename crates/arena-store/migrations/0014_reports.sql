-- Reports of messages that an administrator hasn't handled. Each network has at most one report of a message.
CREATE TABLE reports (
    channel TEXT NOT NULL,             -- name of the channel: invites, a session's id, or challenge_ and the id
    idx     BIGINT NOT NULL,           -- index of the message
    network TEXT NOT NULL,             -- network of the reporter
    reason  TEXT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (channel, idx, network)
);
CREATE INDEX reports_at ON reports (at);
CREATE INDEX reports_network ON reports (network);
