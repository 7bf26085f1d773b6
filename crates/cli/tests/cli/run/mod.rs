//! `leasehold run`.

mod endings;
mod guard;
mod helpers;
mod loss;
mod nested;
mod once;
mod several;
mod signals;
mod terminal;

pub(crate) use loss::is_gone;
