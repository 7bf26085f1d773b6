use leasehold_services::Outcome;

use crate::{
    books::{AMOUNT, Entries},
    form::{ALL, CLICKS, Fate},
    tally::Tally,
};

/// Checks the books, and the answers that users got.
pub(crate) fn audit(books: &Entries, tally: &Tally, held: usize) -> Outcome {
    let users = ALL * CLICKS as u64;
    Outcome::new()
        .fact("forms", ALL)
        .fact("users", users)
        .fact("requests", tally.requests.get())
        .fact("runs", tally.runs())
        .fact("told that it runs", tally.running.get())
        .fact("told that it was done", tally.done.get())
        .fact("failed or unanswered", tally.failed.get())
        .fact("stale writes refused", tally.refused.get())
        .holds("every form is in the books", books.forms.iter().copied().eq(0..ALL))
        .holds("every form took effect once", books.total == ALL * AMOUNT)
        .holds("nothing ran that need not", tally.runs() == ALL + Fate::unlucky())
        .holds("every user heard the end", tally.first.get() + tally.done.get() == users)
        .holds("one user of each form was first", tally.first.get() == ALL)
        .holds("the write of the stalled run was refused", tally.refused.get() == 1)
        .holds("the door of the dead stayed closed", tally.running_dead.get() > 0)
        .holds("nothing is held at the end", held == 0)
}
