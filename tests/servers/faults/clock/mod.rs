//! Clocks that step and run too fast, of servers and of processes.

mod roles;
mod scene;

mod client_clock_steps;
mod server_clock_back;
mod server_clock_back_after_loss;
mod server_clock_forward;
mod server_clock_slews;
