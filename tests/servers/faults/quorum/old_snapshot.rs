use leasehold_testkit::QuorumGroup;

use super::forgetful::{Loss, stays_out, votes_at_once};
use crate::support::matrix::row;

row! {
    old_snapshot: || stays_out(&LOSS), || votes_at_once(&LOSS);
    fault: "one of the two servers that have granted a lease is killed, and starts with an older snapshot",
    right: "it grants nothing although it has a boot mark: that is the mark of an earlier run",
    control: "a server that votes as soon as it is back",
}

const LOSS: Loss = Loss {
    prepare: |group| (0..group.nodes()).for_each(|number| group.save(number)),
    lose: QuorumGroup::revive,
};
