-- leasehold_fences: the highest fence that each resource has admitted, and the lease it came with.
--
-- Copy this file among your migrations, under a number of theirs. Leasehold never deletes a row: a
-- watermark that is forgotten takes the next writer for the first, however old its fence.

CREATE TABLE IF NOT EXISTS leasehold_fences (
    -- "C": bytes are compared, whatever the collation of the database.
    resource TEXT COLLATE "C" PRIMARY KEY CHECK (resource <> ''),
    fence BIGINT NOT NULL CHECK (fence BETWEEN 1 AND 9007199254740991),
    lease TEXT COLLATE "C" NOT NULL CHECK (lease <> ''),
    -- The fence that was admitted before this one; NULL for the first.
    previous BIGINT
-- Every admission rewrites its row, so half of a page is room for that.
) WITH (fillfactor = 50);
