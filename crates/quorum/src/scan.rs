use leasehold_core::{
    Instant, StoreError,
    store::{Scan, ScanCursor, ScanPage},
};

use super::{failure::too_few, node::QuorumNode, nodes::Nodes, tally::majority};

/// One step on one node; the nodes are read one after the other.
///
/// A lease that is believed is on a majority, so it is named unless a majority is out of reach.
pub(super) async fn scan<N: QuorumNode>(
    nodes: &Nodes<N>,
    Scan { pattern, cursor }: Scan,
    deadline: Instant,
) -> Result<ScanPage, StoreError> {
    let places: Vec<String> = nodes.each.iter().map(QuorumNode::place).collect();
    let parts = || places.iter().map(String::as_str);
    let Some((part, at)) = cursor.next(parts()) else { return Ok(ScanPage::end()) };
    let Some(node) = nodes.each.iter().find(|node| node.place() == part) else {
        return Ok(ScanPage::end());
    };
    let deadline = deadline.min(nodes.clock.now() + nodes.settings.patience());
    let (names, next, failed) = match node.scan(&pattern, at, deadline).await {
        Ok((names, at)) => (names, cursor.after(part, at), None),
        Err(error) => {
            let next = cursor.after(&missed(part), None).after(part, None);
            let failed = unless_enough(&next, &places, error);
            (Vec::new(), next, failed)
        }
    };
    let is_over = next.next(parts()).is_none();
    Ok(ScanPage { names, failed, next: (!is_over).then_some(next) })
}

/// Why the list has gaps, once a majority of the nodes was missed.
fn unless_enough(cursor: &ScanCursor, places: &[String], error: StoreError) -> Option<StoreError> {
    let were_missed = places.iter().filter(|place| cursor.has_read(&missed(place))).count();
    let (nodes, needed) = (places.len(), majority(places.len()));
    (were_missed == needed).then(|| too_few(nodes - were_missed, nodes, &[error], false))
}

/// What the cursor remembers of a node that could not be read.
fn missed(place: &str) -> String {
    format!("missed {place}")
}
