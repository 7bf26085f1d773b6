use std::time::Duration;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a time as people write it, numbers with their units: `500ms`, `30s`, `1m30s`, `2h`, `7d`.
///
/// # Errors
///
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(FORM);
    }
    if rest.starts_with('-') {
        return Err("a time cannot be negative");
    }
    let mut millis = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(FORM)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, left) = after.split_at(letters);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(FORM)?;
        if number.is_empty() {
            return Err(FORM);
        }
        // All that is left to fail is the size.
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
        millis = part.and_then(|part| millis.checked_add(part)).ok_or(TOO_LONG)?;
        rest = left;
    }
    Ok(Duration::from_millis(millis))
}

const FORM: &str = "write a number with its unit, such as 500ms, 30s, 10m, 2h or 1h30m";
const TOO_LONG: &str = "the time is too long: write a shorter one";

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
        for bad in ["", "30", "s", "1.5s", "1s-1s", "1y", "1s2"] {
            assert_eq!(duration(bad), Err(FORM), "{bad}");
        }
        for long in ["99999999999999999999s", "9999999999999999d", "200000000000d300000000000d"] {
            assert_eq!(duration(long), Err(TOO_LONG), "{long}");
        }
        assert!(duration("-1s").unwrap_err().contains("negative"));
    }
}
