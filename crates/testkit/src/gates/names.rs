/// Names that storages, encodings and careless code confuse; [`hostile_names`] has the long ones,
/// too.
pub const HOSTILE_NAMES: &[&str] = &[
    // Letters.
    "stock/7",
    "Stock/7",
    "STOCK/7",
    "straße",
    "strasse",
    "STRASSE",
    "naïve",
    "nai\u{308}ve",
    "ﬁ",
    "fi",
    // Encodings.
    "stock%2F7",
    "stock%2f7",
    "users/~bob",
    "users/%7Ebob",
    "users/%257Ebob",
    "a b",
    "a+b",
    "a%20b",
    // Braces, and what Redis makes of them.
    "b",
    "{b}",
    "{b",
    "b}",
    "{}",
    "a{b}c",
    "{a}{b}",
    "{b}:watermark",
    "watermark:{b}",
    "b:watermark",
    // Slashes and dots.
    "/stock/7",
    "stock/7/",
    "stock//7",
    "stock/./7",
    "stock/../7",
    "..",
    ".",
    "/",
    "a\\b",
    // Digits, with signs and zeros.
    "7",
    "07",
    "+7",
    "-7",
    "7.0",
    "7e0",
    " 7",
    "7 ",
    "٧",
    "0x7",
    // What ends or begins something elsewhere.
    "",
    "a\0b",
    "a\nb",
    "a\r\nb",
    "'; DROP TABLE kept; --",
    "\"",
    "$1",
    "*",
    "?",
    "#",
    "[ab]",
    "a:b",
    "a,b",
];

/// Every hostile name, and long ones: of 1,024 bytes and more, which differ in their last byte
/// only.
pub fn hostile_names() -> Vec<String> {
    let long = [1_023, 1_024, 1_025, 2_048]
        .into_iter()
        .flat_map(|bytes| ["x", "y"].map(|last| "n".repeat(bytes - 1) + last));
    HOSTILE_NAMES.iter().map(|name| (*name).to_owned()).chain(long).collect()
}
