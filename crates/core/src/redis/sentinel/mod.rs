//! The Sentinels that name a master: what they are asked, and whom to believe.

mod ballot;
mod member;
mod route;

pub(super) use route::{Epoch, Route};
