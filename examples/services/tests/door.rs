//! The door of the example `duplicate_submission`, in virtual time: its tests stand in its own file.
//!
//! They run from here. An example whose tests cargo runs is not built as the program that
//! `tests/examples.rs` starts.

#[path = "../examples/duplicate_submission/door.rs"]
mod door;
#[path = "../examples/duplicate_submission/form.rs"]
#[expect(dead_code, reason = "the door needs only how long it stays closed")]
mod form;
