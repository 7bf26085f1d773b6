//! The gate on PostgreSQL: the watermark and the write in one transaction.
//!
//! With the feature `postgres`, `PostgresGate` admits a stamp within a transaction of yours. The
//! texts that it sends are here for every driver: [`FenceTable`] has a row for each resource,
//! [`FencedRows`] is a table of yours with a fence in each row.
//!
//! | | a row per resource | a fence in each row |
//! |---|---|---|
//! | what it guards | whatever the transaction writes | the row |
//! | statements | one more | none |
//! | needs | a table of its own | two columns in yours |
//! | after a `DELETE` | remembers | has forgotten |
//!
//! # How a write is guarded
//!
//! 1. Take the lease.
//! 2. `advance`, before the first read: committed at once, it shuts out the holder before. A holder
//!    that only writes does not need it.
//! 3. `BEGIN`, admit, read, write, `COMMIT`. The admission locks the row of the resource, so a
//!    newer holder waits until this transaction has ended, and an older one is refused after it.
//! 4. When the fence is stale, roll back and stop: somebody else has the lock. When the transaction
//!    met another one (SQLSTATE 40001 or 40P01), roll back and repeat all of it.
//!
//! # Traps
//!
//! - *`<` where `<=` was meant, or the other way round.* With `fence <= $2` two leases that were
//!   ever given one fence pass as one; with `fence < $2` alone the second write of a lease is
//!   refused, and so is the repeat of one whose answer was lost. The rule is: newer, or equal and
//!   of the same lease.
//! - *Reading and then writing.* `SELECT fence …`, a comparison in the program, and an `UPDATE` let
//!   another holder in between the two. The comparison belongs into the statement that writes.
//! - *Reading before the admission.* What was read before it may be from before the last holder's
//!   write. Admit first.
//! - *Admitting in one transaction and writing in another.* The admission guards what commits with
//!   it. `admit_in` refuses a connection that is in no transaction.
//! - *Rolling back a savepoint that is older than the admission.* That undoes the admission, and a
//!   refusal as well; a nested `begin()` is a savepoint, and dropping it rolls it back. Admit
//!   before the first savepoint, or write within the same one, and return a refusal out of the
//!   outermost transaction.
//! - *A key column that is not unique.* Each row is judged by its own fence.
//! - *Advancing on the pool while one's own transaction has admitted the resource.* The one waits
//!   for the other, without end unless `lock_timeout` is set.
//! - *A sub-query in the statement that waits.* Under `READ COMMITTED` it sees other rows as they
//!   were when the statement began. Read in a statement after the admission or the advance.
//! - *An earlier write of the same lease* that was not answered and arrives after a later one: both
//!   have the same stamp. Await each write or commit; where one was not answered, number the writes
//!   of a lease in a column of yours, and add `AND step < $5` to the statement.
//! - *Asking the lock for its current fence* when writing. A paused holder would present that of
//!   its successor. Present the one that came with your lease.
//! - *Taking an `UPDATE` of no row for a stale fence.* The row may be missing.
//! - *Looking at what the same statement saw.* `WITH written AS (UPDATE …) SELECT fence …` shows
//!   the row as it was before the statement waited for the holder that refused it.
//! - *A paused holder within its transaction.* It keeps the row locked, and its successor waits
//!   longer than any lease. Set `idle_in_transaction_session_timeout` below the ttl: the server
//!   then ends the session of the paused one, with all it wrote.
//! - *Several resources in any order.* Two transactions that admit A and B in different orders end
//!   in a deadlock, and one of them has to be repeated. Admit in the order of the names.
//! - *A watermark in the Redis that grants the lock.* A failover that loses the lease loses it too.
//!   Here the watermark is as durable as the data, because it is committed with it.

#[cfg(feature = "postgres")]
mod failure;
#[cfg(feature = "postgres")]
mod gate;
mod rows;
mod table;

#[cfg(feature = "postgres")]
pub use failure::Unwritten;
#[cfg(feature = "postgres")]
pub use gate::PostgresGate;
pub use rows::FencedRows;
pub use table::{FenceTable, IdentifierError};
