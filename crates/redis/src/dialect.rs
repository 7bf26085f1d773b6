use leasehold_core::{LockName, Replication};
use redis::{Cmd, Value};

use super::script::Script;

/// How commands of one kind travel: which script takes them, and how they are written. A
/// [`Batcher`](super::batcher::Batcher) sends many of them as one call.
pub trait Dialect: Send + Sync + 'static {
    /// A command; owned, so that it can wait.
    type Command: Send + Sync + 'static;

    /// For how many rounds of the other tasks a courier waits before it takes commands along.
    const ROUNDS: u32 = 0;

    /// Whether half of the callers are answered first.
    const SPLITS: bool = true;

    /// How many keys a call with so many commands has.
    fn keys(count: usize) -> usize;

    /// The script of a call whose commands need these acknowledgements.
    fn script(acks: Replication) -> &'static Script;

    /// Which acknowledgements a good answer needs.
    fn acks(command: &Self::Command) -> Replication;

    /// The retention that its call has, in ms: a call has one for all of its commands.
    fn retention(&self, command: &Self::Command) -> u64;

    /// Whether the command may be sent once more when its connection ends before the answer.
    fn repeats(command: &Self::Command) -> bool;

    /// The answers to the commands of a call, out of the answer to the call.
    fn answers(answer: Value) -> Value {
        answer
    }

    /// Writes the keys and arguments of a call.
    fn write<'a>(&self, to: &mut Cmd, commands: impl Iterator<Item = &'a Self::Command> + Clone);

    /// The script of a call that declares no keys and serves the fast path of some commands alone
    /// (ADR 0035), if there is one. A dialect that has one also has the two functions below.
    fn gathered() -> Option<&'static Script> {
        None
    }

    /// The lock of a command that such a call may serve.
    fn quick_lock(_command: &Self::Command) -> Option<&LockName> {
        None
    }

    /// Writes the arguments of such a call.
    fn write_gathered(&self, _to: &mut Cmd, _commands: &[Self::Command]) {}
}
