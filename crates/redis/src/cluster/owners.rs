use std::{collections::BTreeMap, ops::RangeInclusive};

use super::view::View;

/// Who owns which slots, as far as a process knows: the last view of a node, and what redirections
/// have said of single slots since then.
#[derive(Debug, Clone)]
pub struct SlotOwners<N> {
    view: Option<View>,
    /// In the order of the slots.
    masters: Vec<(RangeInclusive<u16>, N)>,
    /// Slots whose owner was named since the last view.
    moved: BTreeMap<u16, N>,
}

impl<N> SlotOwners<N> {
    /// The last view.
    pub fn view(&self) -> Option<&View> {
        self.view.as_ref()
    }

    /// The owner of a slot.
    pub fn of(&self, slot: u16) -> Option<&N> {
        let of_range = || {
            let after = self.masters.partition_point(|(range, _)| *range.start() <= slot);
            let (range, node) = self.masters.get(after.checked_sub(1)?)?;
            range.contains(&slot).then_some(node)
        };
        self.moved.get(&slot).or_else(of_range)
    }

    /// A node has named another one as the owner of a slot.
    pub fn moved(&mut self, slot: u16, to: N) {
        self.moved.insert(slot, to);
    }

    /// Takes a view, and says whether it is another one than before: then the caller
    /// [replaces](Self::replace) the owners.
    pub fn settle(&mut self, view: &View) -> bool {
        self.moved.clear();
        self.view.as_ref() != Some(view)
    }

    /// These are the owners from now on, in the order of the view.
    pub fn replace(&mut self, view: View, masters: Vec<(RangeInclusive<u16>, N)>) {
        (self.view, self.masters) = (Some(view), masters);
    }
}

/// Nothing is known.
impl<N> Default for SlotOwners<N> {
    fn default() -> Self {
        Self { view: None, masters: Vec::new(), moved: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(epoch: u64) -> View {
        View { is_ok: true, epoch, owners: Vec::new(), nodes: BTreeMap::new() }
    }

    #[test]
    fn a_redirection_counts_until_the_next_view() {
        let mut owners = SlotOwners::default();
        assert_eq!(owners.of(3), None);
        assert!(owners.settle(&view(1)));
        owners.replace(view(1), vec![(0..=8, 'a'), (10..=16_383, 'b')]);
        assert_eq!(
            [0, 8, 9, 10, 16_383].map(|slot| owners.of(slot).copied()),
            [Some('a'), Some('a'), None, Some('b'), Some('b')]
        );
        owners.moved(3, 'c');
        assert_eq!((owners.of(3), owners.of(4)), (Some(&'c'), Some(&'a')));
        assert!(!owners.settle(&view(1)));
        assert_eq!(owners.of(3), Some(&'a'));
        assert!(owners.settle(&view(2)));
    }
}
