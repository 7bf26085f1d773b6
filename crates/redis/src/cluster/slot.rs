use std::ops::RangeInclusive;

use leasehold_core::LockName;

/// How many slots a Cluster has.
pub(super) const SLOTS: u16 = 16_384;

/// The slot of a key: the CRC16 of its hash tag, or of the whole key where there is none; see the
/// [cluster specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model).
pub fn slot_of(key: &str) -> u16 {
    crc16(hash_tag(key).unwrap_or(key).as_bytes()) % SLOTS
}

/// The slot of all keys of a lock, whose hash tag begins with its name.
pub fn slot_of_lock(name: &LockName) -> u16 {
    let name = name.as_str();
    // A name never begins with the brace that ends the tag.
    let tag = name.split_once('}').map_or(name, |(tag, _)| tag);
    crc16(tag.as_bytes()) % SLOTS
}

/// The first hash tag that is in one of some slots, of the numbers behind a prefix; `None` where there are no slots.
pub(super) fn tag_in(slots: &[RangeInclusive<u16>], prefix: &str) -> Option<String> {
    if slots.is_empty() {
        return None;
    }
    // One slot of all is found within so many draws, but for one in e^64 times.
    let mut tags = (0..u32::from(SLOTS) * 64).map(|number| format!("{prefix}{number}"));
    tags.find(|tag| {
        let slot = slot_of(tag);
        slots.iter().any(|range| range.contains(&slot))
    })
}

/// What stands between the first `{` and the first `}` after it, if it is anything.
fn hash_tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let [high, low] = crc.to_be_bytes();
        u16::from_be_bytes([low, 0]) ^ TABLE[usize::from(high ^ byte)]
    })
}

/// What each byte adds to the sum.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use leasehold_core::store::KeyScheme;

    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot_of("123456789"), 0x31C3);
        assert_eq!(slot_of("{user1000}.following"), slot_of("user1000"));
        assert_eq!(slot_of("foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot_of("foo{{bar}}zap"), slot_of("{bar"));
    }

    #[test]
    fn a_tag_is_found_for_every_slot() {
        for slot in [0, 1, 8_191, SLOTS - 1] {
            let tag = tag_in(&[slot..=slot], "").unwrap();
            assert_eq!(slot_of(&format!("ns:runtime:x{{{tag}}}")), slot);
        }
        assert_eq!(tag_in(&[0..=SLOTS - 1], "").unwrap(), "0");
        assert_eq!(tag_in(&[], ""), None);
    }

    #[test]
    fn all_keys_of_a_lock_are_in_its_slot() {
        let keys = KeyScheme::default();
        for name in ["a", "orders/42", "a}b", "{a", "a{b}c", "ü}"] {
            let name = LockName::new(name).unwrap();
            let slot = slot_of_lock(&name);
            for key in
                [keys.lease(&name), keys.queue(&name), keys.waiters(&name), keys.withdrawn(&name)]
            {
                assert_eq!(slot_of(&key), slot, "{key}");
            }
        }
    }
}
