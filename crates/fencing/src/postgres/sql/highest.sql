-- highest: reads the watermark that stood in the way.
--
-- $1 resource, TEXT
-- Returns its fence and lease, or no row.
-- Why: a statement of its own, after the refusal. Within that one statement the row is seen as it
-- was when the statement began, before the newer holder that it waited for.
SELECT fence, lease FROM leasehold_fences WHERE resource = $1
