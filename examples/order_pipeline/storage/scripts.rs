use leasehold::fencing::{FencedScript, RedisGate};

/// The storage's scripts, each of which runs only behind the gate.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) look: FencedScript,
    pub(super) book: FencedScript,
    pub(super) open: FencedScript,
    pub(super) tell: FencedScript,
    pub(super) close: FencedScript,
}

impl Scripts {
    pub(super) fn behind(gate: &RedisGate) -> Self {
        Self {
            look: gate.wrap(include_str!("lua/look.lua")),
            book: gate.wrap(include_str!("lua/book.lua")),
            open: gate.wrap(include_str!("lua/open.lua")),
            tell: gate.wrap(include_str!("lua/tell.lua")),
            close: gate.wrap(include_str!("lua/close.lua")),
        }
    }
}
