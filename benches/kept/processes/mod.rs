//! Processes whose tasks want one lock.

mod baton;
mod load;
mod output;
mod run;
mod task;
mod worker;

pub(crate) use load::Load;
pub(crate) use run::measure;
pub(crate) use worker::main as worker;
