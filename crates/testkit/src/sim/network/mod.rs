//! What is on its way between processes, servers and Sentinels.

mod connections;
mod end;
mod letter;
mod pushes;
mod question;
mod sending;
mod slot;
mod talk;
mod wire;

pub(super) use letter::{Happening, Lane, Letter};
pub(super) use question::{About, Question, Reply, Told};
pub(super) use sending::Ticket;
pub(super) use slot::Outcome;
pub(super) use wire::Wire;
