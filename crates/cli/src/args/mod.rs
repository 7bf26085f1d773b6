//! What may be written on the command line.

mod command;
mod duration;
mod exit_code;
mod mistake;
mod perform;

pub(crate) use command::{
    BenchArgs, DoctorArgs, ListArgs, Program, ReleaseArgs, RunArgs, ServerArgs, ShowArgs, TopArgs,
};
pub(crate) use perform::perform;
