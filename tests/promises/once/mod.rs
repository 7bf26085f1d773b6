//! `once`: the first caller runs; others hear of it at once, for as long as it runs and for a
//! window after it succeeded; a run that fails, is dropped or dies opens the door again.

mod begun;
mod control;
mod failed;
mod race;
mod run;
mod unknown;
mod words;
