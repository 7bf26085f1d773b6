//! Batches of which one call cannot carry all.

use futures_util::future::join_all;

/// A part of a batch: where its members stand in the batch, and the members.
pub(super) type Part<T> = (Vec<usize>, Vec<T>);

/// Splits a batch into parts whose members are alike, of at most `most` members.
pub fn parts<T, K: PartialEq>(batch: Vec<T>, most: usize, alike: impl Fn(&T) -> K) -> Vec<Part<T>> {
    let mut parts = Vec::<(K, Part<T>)>::new();
    for (place, member) in batch.into_iter().enumerate() {
        let key = alike(&member);
        let is_its = |(other, (places, _)): &(K, Part<T>)| *other == key && places.len() < most;
        let at = parts.iter().rposition(is_its).unwrap_or_else(|| {
            parts.push((key, Part::default()));
            parts.len() - 1
        });
        let (_, (places, members)) = &mut parts[at];
        places.push(place);
        members.push(member);
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Sends all parts of a batch at once, and returns the answers in the order of the batch.
///
/// # Cancel safety
///
/// Dropping the future drops those of all parts.
pub async fn in_order<'a, T, A, F>(parts: &'a [Part<T>], ask: impl Fn(&'a [T]) -> F) -> Vec<A>
where
    F: Future<Output = Vec<A>>,
{
    let sent = join_all(parts.iter().map(|(_, members)| ask(members))).await;
    let places = parts.iter().flat_map(|(places, _)| places);
    let mut answers: Vec<_> = places.zip(sent.into_iter().flatten()).collect();
    answers.sort_by_key(|(place, _)| **place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_split_by_what_is_alike_and_by_size() {
        let parts = parts((0..300).collect(), 64, |member| *member < 10);
        let sizes: Vec<_> = parts.iter().map(|(_, members)| members.len()).collect();
        assert_eq!(sizes, [10, 64, 64, 64, 64, 34]);
        for (places, members) in parts {
            assert_eq!(places, members);
        }
    }

    #[tokio::test]
    async fn answers_stand_in_the_order_of_the_batch() {
        let parts = parts((0..300).collect(), 64, |member| member % 3);
        let double = |members: &[usize]| {
            let doubled = members.iter().map(|member| member * 2).collect::<Vec<_>>();
            std::future::ready(doubled)
        };
        let answers = in_order(&parts, double).await;
        assert!(answers.into_iter().eq((0..300).map(|member| member * 2)));
        assert!(in_order(&[], double).await.is_empty());
    }
}
