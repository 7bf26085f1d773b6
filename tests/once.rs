//! `once`: the first caller runs; others hear of it at once, for as long as it runs and for a window
//! after it succeeded; a run that fails, is dropped or dies opens the door again.

#[path = "once/begun.rs"]
mod begun;
#[path = "once/control.rs"]
mod control;
#[path = "once/failed.rs"]
mod failed;
#[path = "once/race.rs"]
mod race;
#[path = "once/run.rs"]
mod run;
#[path = "once/unknown.rs"]
mod unknown;
mod virtual_support;
#[path = "once/words.rs"]
mod words;
