use std::time::Duration;

use redis::{Connection, RedisError, cmd};

/// The processor time that a server has used in user and kernel mode.
pub(crate) fn time_used(server: &mut Connection) -> Result<Duration, RedisError> {
    let info: String = cmd("INFO").arg("cpu").query(server)?;
    let of = |line: &str| {
        let (name, seconds) = line.split_once(':')?;
        let counts = ["used_cpu_sys", "used_cpu_user"].contains(&name);
        seconds.trim().parse::<f64>().ok().filter(|_| counts)
    };
    Ok(Duration::from_secs_f64(info.lines().filter_map(of).sum()))
}
