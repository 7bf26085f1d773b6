//! What these tests share: other processes and what they tell, patience with a busy machine, and
//! what the rows of the fault matrix need.

pub(crate) mod cancel;
pub(crate) mod child;
pub(crate) mod crew;
pub(crate) mod events;
pub(crate) mod forger;
pub(crate) mod fork;
pub(crate) mod idle;
pub(crate) mod lease;
pub(crate) mod line;
pub(crate) mod matrix;
pub(crate) mod naive;
pub(crate) mod pair;
pub(crate) mod patient;
pub(crate) mod proxied;
pub(crate) mod raw;
pub(crate) mod storage;
pub(crate) mod stranger;
pub(crate) mod unheard;
pub(crate) mod wait;
pub(crate) mod worker;
