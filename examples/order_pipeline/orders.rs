use std::{collections::HashMap, fs, path::Path};

use crate::{article::Article, failure::Failure};

/// One line of the order file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) pieces: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Restock,
    Sale,
}

/// All orders: by article, and the articles in the sequence in which they are asked for.
#[derive(Debug)]
pub(crate) struct OrderFile {
    pub(crate) articles: Vec<Article>,
    /// For every order of the file the index of its article.
    pub(crate) line: Vec<usize>,
    /// Tells this file from others: copies work together on the same one only.
    pub(crate) fingerprint: u64,
}

impl OrderFile {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| format!("the order file {shown} cannot be read: {error}"))?;
        Self::parse(&text).map_err(|error| format!("the order file {shown}: {error}").into())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut file =
            Self { articles: Vec::new(), line: Vec::new(), fingerprint: fingerprint(text) };
        let mut known = HashMap::new();
        for (at, row) in text.lines().enumerate().skip(1) {
            let (article, order) = parse_row(row)
                .ok_or_else(|| format!("line {}: expected order,article,kind,pieces", at + 1))?;
            let index = *known.entry(article).or_insert(file.articles.len());
            if index == file.articles.len() {
                file.articles.push(Article { name: article.to_owned(), orders: Vec::new() });
            }
            file.articles[index].orders.push(order);
            file.line.push(index);
        }
        if file.line.is_empty() { Err("it has no orders".into()) } else { Ok(file) }
    }
}

fn parse_row(row: &str) -> Option<(&str, Order)> {
    let mut fields = row.split(',');
    let number = fields.next()?.parse().ok()?;
    let article = fields.next().filter(|name| !name.is_empty())?;
    let kind = match fields.next()? {
        "restock" => Kind::Restock,
        "sale" => Kind::Sale,
        _ => return None,
    };
    let pieces = fields.next()?.parse().ok()?;
    fields.next().is_none().then_some((article, Order { number, kind, pieces }))
}

/// FNV-1a: short, and the same in every build.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
