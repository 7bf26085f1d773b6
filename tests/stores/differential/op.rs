use leasehold_core::{AcquisitionId, LockName, Mode};
use leasehold_testkit::contract::{alice, bob, carol};
use proptest::{collection::vec, prelude::*};

/// How many locks a sequence is about.
pub(crate) const NAMES: usize = 3;

/// How many acquisitions a sequence has, four of each runtime.
const IDS: usize = 12;

/// A fence as a sequence names it: so many grants back from the newest that the name has seen.
pub(crate) type Back = Option<usize>;

/// A lease as a sequence names it: the name, the acquisition, the fence.
pub(crate) type Named = (usize, usize, Back);

/// Who waits, under which sign of life; every ttl of a waiter is two hours and
/// a quarter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) id: usize,
    /// Half hours, and a quarter of an hour.
    pub(crate) window: u32,
    pub(crate) number: u64,
    pub(crate) seen: Back,
    pub(crate) keeps: bool,
}

/// One step of a sequence; times are in half hours.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Acquire { name: usize, id: usize, ttl: u32, seen: Back, keeps: bool },
    Wait { name: usize, waiting: Waiting },
    Heartbeat(Vec<(usize, Waiting)>),
    Hold { lease: Named, count: u32, number: u64, ttl: u32 },
    Release { lease: Named, keep: Option<u32>, next: Option<Waiting> },
    Renew(Vec<(Named, u32)>),
    Withdraw { name: usize, id: usize },
    Inspect { name: usize },
    ForceRelease { lease: Named },
    Pass(u32),
    LoseAll,
}

pub(crate) fn id(index: usize) -> AcquisitionId {
    let of_runtime: [fn(u64) -> AcquisitionId; 3] = [alice, bob, carol];
    let number = u64::try_from(index / 3).expect("a small number") + 9;
    of_runtime[index % 3](number)
}

/// Every other acquisition of a runtime is that of a reader.
pub(crate) fn mode(index: usize) -> Mode {
    if (index / 3).is_multiple_of(2) { Mode::Write } else { Mode::Read }
}

pub(crate) fn names() -> [LockName; NAMES] {
    ["orders/1", "a}b", "ü 2"].map(|name| LockName::new(name).expect("a name"))
}

fn seen() -> impl Strategy<Value = Back> + Clone {
    prop_oneof![2 => Just(None), 1 => (0..3_usize).prop_map(Some)]
}

fn waiting() -> impl Strategy<Value = Waiting> + Clone {
    // Beyond the ttl now and then.
    let window = prop_oneof![4 => 0..3_u32, 1 => Just(9)];
    (0..IDS, window, 8..13_u64, seen(), any::<bool>())
        .prop_map(|(id, window, number, seen, keeps)| Waiting { id, window, number, seen, keeps })
}

fn lease() -> impl Strategy<Value = Named> + Clone {
    // Mostly the newest token, sometimes an older one, sometimes one that never was.
    let back = prop_oneof![6 => Just(Some(0)), 2 => (1..4_usize).prop_map(Some), 1 => Just(None)];
    (0..NAMES, 0..IDS, back)
}

/// Any step.
pub(crate) fn op() -> impl Strategy<Value = Op> {
    let (name, id, half_hours) = (0..NAMES, 0..IDS, 1..5_u32);
    // Sometimes longer than a lock can be kept.
    let keep =
        prop_oneof![6 => Just(None), 1 => half_hours.clone().prop_map(Some), 1 => Just(Some(60))];
    let next = prop_oneof![1 => Just(None), 1 => waiting().prop_map(Some)];
    prop_oneof![
        4 => (name.clone(), id.clone(), half_hours.clone(), seen(), any::<bool>())
            .prop_map(|(name, id, ttl, seen, keeps)| Op::Acquire { name, id, ttl, seen, keeps }),
        10 => (name.clone(), waiting()).prop_map(|(name, waiting)| Op::Wait { name, waiting }),
        3 => vec((name.clone(), waiting()), 0..5).prop_map(Op::Heartbeat),
        3 => (lease(), 1..5_u32, 0..6_u64, half_hours.clone())
            .prop_map(|(lease, count, number, ttl)| Op::Hold { lease, count, number, ttl }),
        4 => (lease(), keep, next).prop_map(|(lease, keep, next)| Op::Release { lease, keep, next }),
        3 => vec((lease(), half_hours.clone()), 0..4).prop_map(Op::Renew),
        3 => (name.clone(), id).prop_map(|(name, id)| Op::Withdraw { name, id }),
        3 => name.prop_map(|name| Op::Inspect { name }),
        1 => lease().prop_map(|lease| Op::ForceRelease { lease }),
        3 => half_hours.prop_map(Op::Pass),
        1 => Just(Op::LoseAll),
    ]
}
