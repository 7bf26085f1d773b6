//! `leasehold run`.

mod endings;
mod first_process;
mod grace;
mod guard;
mod helpers;
mod loss;
mod nested;
mod once;
mod refused;
mod several;
mod signals;
mod terminal;
mod waiting;

pub(crate) use guard::children;
pub(crate) use loss::is_gone;
