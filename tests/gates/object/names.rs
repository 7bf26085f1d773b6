//! One object has one watermark, however its name is given.

use std::sync::Arc;

use leasehold::fencing::Admitted;
use object_store::{memory::InMemory, path::Path};

use super::words::{gate, of};

/// Names that `Path::parse` and `Path::from` read differently, or that neither leaves as they are.
const HOSTILE: [&str; 21] = [
    "users/~bob",
    "users/%7Ebob",
    "users/%257Ebob",
    "a{b}",
    "a#b",
    "a?b",
    "a*b",
    "100%",
    "a|b",
    "a\\b",
    "a\"b",
    "[a]",
    "<a>",
    "^a",
    "`a`",
    "a//b",
    "a/../b",
    "a/./b",
    "naïve",
    // One object has one text: a layer before the gate keeps those apart whose texts differ.
    "/stock/8",
    "stock/8/",
];

/// Names that mean one path.
const PLAIN: [&str; 7] = ["stock/7", "Stock/7", "stock/07", "stock/+7", "a b", "a:b", "a.b/..c"];

#[tokio::test]
async fn a_path_advances_the_object_that_is_written() {
    for name in HOSTILE.iter().chain(&PLAIN) {
        let gate = gate(&Arc::new(InMemory::new()));
        let path = Path::from(*name);
        assert_eq!(gate.put(&path, "9 left", of(40)).await, Ok(Admitted::First));
        assert_eq!(gate.advance(&path, of(42)).await, Ok(Admitted::Newer), "{name}");
        assert!(gate.put(&path, "late", of(41)).await.is_err(), "{name}");
    }
}

/// The damage: one name, read in two ways.
#[tokio::test]
async fn control_a_name_that_is_read_in_two_ways_lets_a_late_write_in() {
    let gate = gate(&Arc::new(InMemory::new()));
    let name = "users/~bob";
    gate.put(&Path::from(name), "9 left", of(40)).await.unwrap();
    let other = Path::parse(name).unwrap();
    assert_eq!(gate.advance(&other, of(42)).await, Ok(Admitted::First));
    assert_eq!(gate.put(&Path::from(name), "late", of(41)).await, Ok(Admitted::Newer));
}
