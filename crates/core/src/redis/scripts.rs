use std::sync::LazyLock;

use super::script::Script;

/// A script of several files, the shared ones first.
macro_rules! script {
    ($name:ident, $($file:literal),+) => {
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new([$(include_str!(concat!("../lua/", $file))),+].concat())
        });
    };
}

script!(
    COMMANDS,
    "commands/head.lua",
    "lease/grant.lua",
    "queue/hand_over.lua",
    "commands/usual.lua",
    "lease/row.lua",
    "queue/line.lua",
    "queue/ask.lua",
    "queue/pass_on.lua",
    "queue/withdraw.lua",
    "commands/rest.lua"
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
