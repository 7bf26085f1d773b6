use leasehold_testkit::QuorumGroup;

use super::forgetful::{Loss, stays_out, votes_at_once};
use crate::support::matrix::row;

row! {
    restarted_empty: || stays_out(&LOSS), || votes_at_once(&LOSS);
    fault: "one of the two servers that have granted a lease is killed, and starts without its data",
    right: "it grants nothing until no lease can be left that it has forgotten; the others go on",
    control: "a server that votes as soon as it is back",
}

const LOSS: Loss = Loss { prepare: |_| (), lose: QuorumGroup::revive_empty };
