use std::sync::LazyLock;

use super::script::Script;

/// A script of several files, the shared ones first; a line of Lua may stand between them.
macro_rules! script {
    ($name:ident, $($part:tt),+ $(,)?) => {
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new([$(script!(@ $part)),+].concat())
        });
    };
    (@ $file:literal) => { include_str!(concat!("lua/", $file)) };
    (@ ($line:literal)) => { concat!($line, "\n") };
}

/// A script, and the same with a write for replicas to acknowledge; their leases stand so far apart
/// in `KEYS`.
macro_rules! script_and_touch {
    ($name:ident, $touching:ident, $step:literal, $($part:tt),+ $(,)?) => {
        script!($name, $($part),+);
        script!(
            $touching,
            ($step),
            ("local answers = (function()"),
            $($part),+,
            ("end)()"),
            "commands/touch.lua",
        );
    };
}

// The ways that few commands need stand in functions: to make a function costs a server as much as
// an argument, even if it is never called, so that functions are made when a command needs them.
script_and_touch!(
    COMMANDS,
    COMMANDS_AND_TOUCH,
    "local step = 4",
    "commands/head.lua",
    "commands/declared.lua",
    ("local function contended()"),
    "lease/grant.lua",
    "queue/tell.lua",
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
script!(GATHERED, "commands/head.lua", "commands/gathered.lua", "commands/usual.lua");
script_and_touch!(
    RENEW,
    RENEW_AND_TOUCH,
    "local step = 1",
    "commands/head.lua",
    ("local function general()"),
    "lease/grant.lua",
    "lease/row.lua",
    "lease/extend.lua",
    ("return extend end"),
    "lease/renew.lua",
);
script!(
    INSPECT,
    "commands/head.lua",
    "lease/grant.lua",
    "lease/row.lua",
    "queue/tell.lua",
    "queue/line.lua",
    "commands/inspect.lua"
);
script!(
    FORCE_RELEASE,
    "commands/head.lua",
    "lease/grant.lua",
    "lease/row.lua",
    "queue/tell.lua",
    "queue/line.lua",
    "commands/force_release.lua"
);
script!(PREFLIGHT, "commands/preflight.lua");
