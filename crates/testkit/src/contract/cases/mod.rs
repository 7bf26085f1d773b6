//! The cases, by the command that they are about.

pub(super) mod acks;
pub(super) mod block;
pub(super) mod fence;
pub(super) mod force_release;
pub(super) mod grant;
pub(super) mod hold;
pub(super) mod inspect;
pub(super) mod keep;
pub(super) mod loss;
pub(super) mod next;
pub(super) mod queue;
pub(super) mod readers;
pub(super) mod recall;
pub(super) mod release;
pub(super) mod renew;
pub(super) mod retention;
pub(super) mod scan;
pub(super) mod twice;
pub(super) mod wake;
pub(super) mod withdraw;
