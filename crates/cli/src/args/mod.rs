//! What may be written on the command line.

mod command;
mod exit_code;
mod mistake;

pub(crate) use command::{
    BenchArgs, DoctorArgs, ListArgs, Program, ProgramCommand, QuorumArgs, QuorumDeed, ReleaseArgs,
    RunArgs, ServerArgs, ShowArgs, TopArgs,
};
pub(crate) use exit_code::ExitCode;
pub(crate) use mistake::mistake;
