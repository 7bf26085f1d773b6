//! A run and what it started: who is left when a lease ends.

mod command_of_root;
mod grace_spent_late;
mod inherited_lock;
