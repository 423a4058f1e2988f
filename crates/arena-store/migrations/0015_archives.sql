-- Ended sessions whose messages are in files. Messages that were added after the archival are in `messages`.
CREATE TABLE archives (
    session      BIGINT PRIMARY KEY,   -- sessions.no
    file         TEXT NOT NULL UNIQUE, -- path of the file in the archive's folder
    at           BIGINT NOT NULL,      -- time of the archival
    chat_len     BIGINT NOT NULL,      -- number of archived messages in the chat
    chat_at      BIGINT NOT NULL,      -- time of the last of them; 0 without messages
    operator_len BIGINT NOT NULL,      -- the same of the operator channel
    operator_at  BIGINT NOT NULL
);
