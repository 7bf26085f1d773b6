-- admit: admits a stamp if it is newer than the watermark or the same, and keeps it.
--
-- $1 resource, TEXT; $2 fence, BIGINT; $3 lease, TEXT
-- Returns one row if it was admitted, with the fence that was admitted before, NULL for the first;
-- no row if it is stale.
-- Why: one statement, so nothing comes between the comparison and the write. Its lock on the row
-- lasts until the transaction ends, so a newer holder waits for the write that follows. The same
-- stamp writes its row again, so that a transaction with an older snapshot notices.
INSERT INTO leasehold_fences AS kept (resource, fence, lease)
VALUES ($1, $2, $3)
ON CONFLICT (resource) DO UPDATE
   SET fence = excluded.fence, lease = excluded.lease, previous = kept.fence
 WHERE kept.fence < excluded.fence
    OR (kept.fence = excluded.fence AND kept.lease = excluded.lease)
RETURNING previous
