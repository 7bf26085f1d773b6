//! The state of one lock name in this process: its tasks in the order of their arrival, and what the
//! runtime has of the lock on the server. Pure: no clock is read here, and nothing is sent.

mod acquiring;
mod env;
mod local_queue;
mod name_state;
mod place;
mod releasing;
#[cfg(test)]
mod tests;
mod turn;
mod withdrawals;

pub(crate) use acquiring::{Joined, Lead, LeasePoll, NoLease};
pub(crate) use env::{
    Beat, Effects, EndedTurn, Env, NextPlace, Numbers, Outgoing, TimedAnswer, TurnId, TurnRelease,
    unheard,
};
pub(crate) use local_queue::Ticket;
pub(crate) use name_state::NameState;
pub(crate) use place::Failing;
pub(crate) use turn::{Keep, TakenToken};
