use std::{collections::BTreeMap, time::Duration};

use crate::{clock::Instant, redis::endpoint::Endpoint};

/// For how long nothing is told of a node that was told of.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// Nodes of other Clusters that were met, and when they were told of.
#[derive(Debug, Default)]
pub(super) struct Impostors(BTreeMap<Endpoint, Instant>);

impl Impostors {
    /// Whether the node at an endpoint is to be told of now.
    pub(super) fn is_news(&mut self, endpoint: &Endpoint, now: Instant) -> bool {
        self.0.retain(|_, told_at| now < *told_at + TOLD_FOR);
        let is_news = !self.0.contains_key(endpoint);
        if is_news {
            self.0.insert(endpoint.clone(), now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_of_once_a_minute() {
        let mut impostors = Impostors::default();
        let at = |secs| Instant::at(Duration::from_secs(secs));
        let [one, other] = [1, 2].map(|port| Endpoint { host: "h".into(), port });
        assert!(impostors.is_news(&one, at(0)) && !impostors.is_news(&one, at(59)));
        assert!(impostors.is_news(&other, at(59)) && impostors.is_news(&one, at(60)));
        assert_eq!(impostors.0.len(), 2);
        impostors.is_news(&one, at(500));
        assert_eq!(impostors.0.len(), 1, "what is long past is forgotten");
    }
}
