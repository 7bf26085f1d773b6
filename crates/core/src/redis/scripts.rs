use std::sync::LazyLock;

use super::script::Script;

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(include_str!(concat!("../lua/", $file))));
    };
}

script!(ACQUIRE, "acquire.lua");
script!(HOLD, "hold.lua");
script!(RELEASE, "release.lua");
script!(RENEW, "renew.lua");
script!(WITHDRAW, "withdraw.lua");
script!(INSPECT, "inspect.lua");
script!(FORCE_RELEASE, "force_release.lua");
script!(PREFLIGHT, "preflight.lua");
