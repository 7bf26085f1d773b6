//! P5, loss is told: `lost()` resolves before the server could give the lease to another; after a
//! pause every look at the lease looks at the clock first; lost never turns back into held.

#[path = "p5_loss_is_told/reasons.rs"]
mod reasons;
#[path = "p5_loss_is_told/signals.rs"]
mod signals;
mod virtual_support;
#[path = "p5_loss_is_told/with.rs"]
mod with;
