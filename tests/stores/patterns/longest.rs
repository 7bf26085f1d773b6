//! The bounds of the scripts: no text of ours is longer.

use leasehold_core::{RuntimeLabel, Stamp};

use super::source::number_in;

const NUMBER: &str = "18446744073709551615";
const TOKEN: &str = "9007199254740991";
/// A time in milliseconds or microseconds, far beyond what the scripts count with.
const TIME: &str = "9999999999999999";

/// The longest acquisition, with room for another part.
fn acquisition() -> String {
    format!("b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:{NUMBER}-{}", "f".repeat(20))
}

fn label() -> String {
    format!("~{}", "x".repeat(RuntimeLabel::MAX_BYTES))
}

#[test]
fn every_text_of_a_lock_is_within_the_bound() {
    let (id, label) = (acquisition(), label());
    let holds = format!("{}/{NUMBER}", u32::MAX);
    let texts = [
        format!("v4 xwkhm--- {TOKEN} {TIME} {TOKEN} {TIME} {TIME} {id} {label} {holds} {TIME}"),
        format!("{id} {NUMBER} {TIME} {TIME} {TOKEN} {label}"),
        format!("v5wmk {TOKEN} {TIME} {id} {NUMBER} {TOKEN} {TOKEN} {TIME} {TIME} {holds} {label}"),
        format!("{TIME} {TIME} {TIME} {label}"),
    ];
    for text in texts {
        for file in ["commands/head.lua", "quorum/src/lua/head.lua"] {
            let bound = number_in(file, "local LONGEST, TO = ");
            assert_eq!(bound, number_in(file, &format!("{bound}, '")));
            assert!(text.len() <= bound, "{} bytes: {text}", text.len());
        }
    }
    let bound = number_in("commands/head.lua", "local LONGEST, TO = ");
    assert_eq!(bound, number_in("commands/touch.lua", "'0', '"));
    assert_eq!(bound, number_in("commands/touch.lua", "#text <= "));
}

#[test]
fn every_mark_and_watermark_is_within_its_bound() {
    let mark = format!("{TIME} {TIME} {}/always", "f".repeat(40));
    let watermark = format!("{TOKEN} {}", acquisition());
    for (file, text) in [("quorum/src/lua/boot.lua", mark), ("fencing/src/lua/gate.lua", watermark)]
    {
        let bound = number_in(file, "'0', '");
        assert!(text.len() <= bound, "{} bytes: {text}", text.len());
    }
    // As the gates write it.
    assert!("9007199254740991 b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7".parse::<Stamp>().is_ok());
}
