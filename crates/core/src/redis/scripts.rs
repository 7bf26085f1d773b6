use std::sync::LazyLock;

use super::script::Script;

/// A script of several files, the shared ones first; a line of Lua may stand between them.
macro_rules! script {
    ($name:ident, $($part:tt),+ $(,)?) => {
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new([$(script!(@ $part)),+].concat())
        });
    };
    (@ $file:literal) => { include_str!(concat!("../lua/", $file)) };
    (@ ($line:literal)) => { concat!($line, "\n") };
}

// The ways that few commands need stand in functions: to make a function costs a server as much as
// an argument, even if it is never called, so that functions are made when a command needs them.
script!(
    COMMANDS,
    "commands/head.lua",
    ("local function contended()"),
    "lease/grant.lua",
    "queue/hand_over.lua",
    ("local function general()"),
    "lease/row.lua",
    "queue/line.lua",
    "queue/ask.lua",
    "queue/pass_on.lua",
    "queue/withdraw.lua",
    "commands/rest.lua",
    ("return run_alone end"),
    ("return quick, general end"),
    "commands/usual.lua",
);
script!(RENEW, "commands/head.lua", "lease/grant.lua", "lease/row.lua", "lease/renew.lua");
script!(
    INSPECT,
    "commands/head.lua",
    "lease/grant.lua",
    "lease/row.lua",
    "queue/line.lua",
    "commands/inspect.lua"
);
script!(
    FORCE_RELEASE,
    "commands/head.lua",
    "lease/grant.lua",
    "lease/row.lua",
    "queue/line.lua",
    "commands/force_release.lua"
);
script!(PREFLIGHT, "commands/preflight.lua");
