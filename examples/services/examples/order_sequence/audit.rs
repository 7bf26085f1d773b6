use leasehold_services::Outcome;

use crate::{CUSTOMERS, ORDERS, worker::Done};

/// Checks the orders as they were entered, as customer and number.
pub(crate) fn audit(journal: &[(u64, u64)], done: &[Done]) -> Outcome {
    let of =
        |customer| journal.iter().filter(move |order| order.0 == customer).map(|order| order.1);
    let in_sequence = (0..CUSTOMERS).filter(|customer| of(*customer).eq(1..=ORDERS)).count();
    let refused = done.iter().map(|done| done.refused).sum::<u64>();
    Outcome::new()
        .fact("customers", CUSTOMERS)
        .fact("orders", journal.len())
        .fact("customers in sequence", in_sequence)
        .fact("stale orders refused", refused)
        .holds("every customer's orders are 1..n", in_sequence as u64 == CUSTOMERS)
        .holds("no order is anybody else's", journal.len() as u64 == CUSTOMERS * ORDERS)
        .holds(
            "workers did what is in the book",
            done.iter().map(|done| done.orders).sum::<u64>() == journal.len() as u64,
        )
        .holds("the late order was refused", refused > 0)
        .holds("nothing is held at the end", done.iter().all(|done| done.held == 0))
}
