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

script!(ACQUIRE, "grant.lua", "alone.lua", "line_up.lua", "queue.lua", "ask.lua", "acquire.lua");
script!(HEARTBEAT, "grant.lua", "queue.lua", "ask.lua", "heartbeat.lua");
script!(HOLD, "hold.lua");
script!(RELEASE, "release.lua", "hand_over.lua", "grant.lua", "queue.lua", "pass_on.lua");
script!(RENEW, "renew.lua");
script!(WITHDRAW, "grant.lua", "queue.lua", "withdraw.lua");
script!(INSPECT, "grant.lua", "queue.lua", "inspect.lua");
script!(FORCE_RELEASE, "grant.lua", "queue.lua", "force_release.lua");
script!(PREFLIGHT, "preflight.lua");
