/// How many slots a Cluster has.
pub(super) const SLOTS: u16 = 16_384;

/// The slot of a key: the CRC16 of its hash tag, or of the whole key where there is none.
///
/// ```
/// use leasehold_testkit::cluster::slot_of;
///
/// assert_eq!(slot_of("123456789"), 12_739);
/// assert_eq!(slot_of("a:{42}:b"), slot_of("42"));
/// ```
pub fn slot_of(key: &str) -> u16 {
    crc16(hash_tag(key).unwrap_or(key).as_bytes()) % SLOTS
}

/// What stands between the first `{` and the first `}` after it, if it is anything.
fn hash_tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

/// CRC-16/XMODEM, bit by bit.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}
