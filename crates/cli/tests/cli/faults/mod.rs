//! The rows of the fault matrix about the program: each file of a room is a row.

#[expect(dead_code, reason = "the rows here all have a control")]
#[path = "../../../../../tests/servers/support/matrix.rs"]
pub(crate) mod matrix;
mod run;
