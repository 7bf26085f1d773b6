//! Reports of calls that have waited for long: for what, held by whom, since when.

mod pace;
mod ration;
mod report;

pub(crate) use pace::next_report;
pub(crate) use ration::Ration;
pub(crate) use report::Report;
