use std::sync::LazyLock;

use leasehold_redis::Script;

pub(super) static QUORUM: LazyLock<Script> = LazyLock::new(|| {
    let parts = [
        include_str!("../lua/head.lua"),
        "local function general(now, now_ms)\n",
        include_str!("../lua/row.lua"),
        include_str!("../lua/line.lua"),
        include_str!("../lua/ask.lua"),
        include_str!("../lua/rest.lua"),
        "return run_alone end\n",
        include_str!("../lua/usual.lua"),
    ];
    Script::new(parts.concat())
});
pub(super) static BOOT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/boot.lua")));
pub(super) static PREFLIGHT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/preflight.lua")));
