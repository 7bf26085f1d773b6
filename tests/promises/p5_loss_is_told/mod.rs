//! P5, loss is told: `lost()` resolves before the server could give the lease to another; after a
//! pause every look at the lease looks at the clock first; lost never turns back into held.

mod reasons;
mod signals;
mod with;
