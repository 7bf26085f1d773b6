use std::fs;

use crate::Failure;

/// The resident memory of this process in bytes.
pub(super) fn resident() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
    Ok(kibibytes.parse::<u64>()? * 1024)
}
