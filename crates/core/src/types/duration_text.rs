use std::time::Duration;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a time as people write it, numbers with their units: `500ms`, `30s`, `1m30s`, `2h`, `7d`.
///
/// # Errors
///
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    read(text).ok_or("write a number with its unit, such as 500ms, 30s, 10m, 2h or 1h30m")
}

fn read(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut millis = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, left) = after.split_at(letters);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        millis = millis.checked_add(number.parse::<u64>().ok()?.checked_mul(*factor)?)?;
        rest = left;
    }
    (!text.trim().is_empty()).then(|| Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in [
            "",
            "30",
            "s",
            "1.5s",
            "-1s",
            "1y",
            "99999999999999999999s",
            "9999999999999999d",
            "1s2",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
