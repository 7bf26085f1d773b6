use std::sync::LazyLock;

use leasehold_redis::Script;

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

script!(
    QUORUM,
    "head.lua",
    ("local function general(now, now_ms)"),
    "row.lua",
    "line.lua",
    "ask.lua",
    "rest.lua",
    ("return run_alone end"),
    "usual.lua",
);
script!(BOOT, "boot.lua");
script!(PREFLIGHT, "preflight.lua");
