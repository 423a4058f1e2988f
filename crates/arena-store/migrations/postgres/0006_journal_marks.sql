-- A random identity of each entry, by which a node notices that the journal was rewound: that what it has read was lost when a standby
-- took over or a backup was put back.
ALTER TABLE journal ADD COLUMN mark TEXT NOT NULL DEFAULT gen_random_uuid()::text;
