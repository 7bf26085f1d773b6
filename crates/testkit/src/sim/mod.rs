//! A deterministic simulation: runtimes, a network and a server in virtual time, from one seed.
//!
//! - [`World`] holds it all, and lets it run on the calling thread.
//! - [`Line`] is a process's store: every command travels as a message, and [`Weather`] says what
//!   goes wrong on the way.
//! - [`Drift`] is how a process's clock runs beside the world's.
//! - [`Spy`] writes one history per name of what runtimes and the server told each other.

mod dice;
mod drift;
mod letter;
mod line;
mod mishap;
mod process;
mod server;
mod slot;
mod spy;
mod stops;
mod trace;
mod weather;
mod wire;
mod world;

pub use dice::{Dice, Ppm};
pub use drift::Drift;
pub use line::Line;
pub use mishap::{Fate, Mishap, Strikes};

pub use server::Peek;
pub use spy::Spy;
pub use stops::Stops;
pub use trace::{Step, Trace};
pub use weather::Weather;
pub use world::{Place, Post, World};
