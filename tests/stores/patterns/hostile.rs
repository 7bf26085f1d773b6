//! Texts that are made to be slow to read.

/// What stands before the part that is repeated: beginnings of each text that the scripts read, up to each of its runs.
const BEGINNINGS: [&str; 14] = [
    "",
    "v4 x",
    "v4 x------- 1",
    "v4 x--h---- 1 1",
    "v4 x---m--- 1 1 ",
    "v4 xw------ 1 1 1 1 1 ",
    "v4 x------- 1 1 1 1 1 ",
    "v4 x------- 1 1 1 1 1 a ",
    "v5w 1 1",
    " a 1 1 1 1 1 1/0 ",
    "1 a-a-a-a-a:",
    "a{",
    "1000 100 run",
    "a:1",
];

/// What stands behind it.
const ENDS: [&str; 3] = ["", " ", "\u{e4}"];

const CHARACTERS: &[u8] = b"1wkam,h/ :-~}.%\xff\t";

/// Texts of about that many bytes, always in the same order.
pub(super) fn hostile_texts(size: usize) -> impl Iterator<Item = Vec<u8>> {
    let ones = CHARACTERS.iter().map(|c| vec![*c]);
    let pairs = CHARACTERS[..11].iter().flat_map(|a| CHARACTERS[..11].iter().map(|b| vec![*a, *b]));
    let repeated: Vec<Vec<u8>> = ones.chain(pairs).collect();
    BEGINNINGS.into_iter().flat_map(move |beginning| {
        let repeated = repeated.clone();
        repeated.into_iter().flat_map(move |unit| {
            ENDS.map(|end| {
                [beginning.as_bytes(), &unit.repeat(size / unit.len()), end.as_bytes()].concat()
            })
        })
    })
}

/// Texts as the scripts write them.
pub(super) fn well_formed() -> impl Iterator<Item = Vec<u8>> {
    const ID: &str = "b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7";
    let texts = [
        "v4 x------- 1700000000000001 9999999999999".to_owned(),
        format!(
            "v4 xw-hm--- 1700000000000001 0000000000000 41 41 41 {ID} ~host/1/a b 2/1 9999999999999"
        ),
        format!(" 41 41 41 {ID} ~host/1/a b"),
        "7 12 1700000000000001 3000 1700000000000001 host/1/a b".to_owned(),
        format!("v5wm 1700000000000001 9999999999999 {ID} 1 41 40 41 41 2/1 label"),
        format!(" {ID} 1 41 40 41 41 2/1 label"),
        format!(" {ID} 1 1700000000000001"),
        "1700000000000001 9999999999999 3000 label".to_owned(),
        format!("41 {ID}"),
        "1000 100 0123456789abcdef/always".to_owned(),
        "0123456789abcdef/always".to_owned(),
        "leasehold:{a}:lease".to_owned(),
        "3600000 5000000 leasehold:runtime:".to_owned(),
    ];
    texts.into_iter().map(String::into_bytes)
}
