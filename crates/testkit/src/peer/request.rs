use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The most words that a command may have.
const MAX_WORDS: usize = 4096;

/// The most bytes that a word or a line may have.
const MAX_BYTES: usize = 1 << 20;

/// Reads a command; `None` when the client has closed the connection.
///
/// # Cancel safety
///
/// Not cancel safe: a command of which a part was read is lost.
pub(super) async fn read(
    client: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<Vec<String>>> {
    let Some(count) = read_size(client, '*', MAX_WORDS).await? else { return Ok(None) };
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let size = read_size(client, '$', MAX_BYTES).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut word = vec![0; size + 2];
        client.read_exact(&mut word).await?;
        word.truncate(size);
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    Ok(Some(words))
}

/// Reads a line such as `*3` or `$5`.
async fn read_size(
    client: &mut (impl AsyncBufRead + Unpin),
    kind: char,
    limit: usize,
) -> io::Result<Option<usize>> {
    let mut line = String::new();
    // Far more than the digits of a number.
    if client.take(64).read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let size = line.strip_prefix(kind).and_then(|size| size.trim_end().parse().ok());
    match size {
        Some(size) if size <= limit => Ok(Some(size)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("not RESP: {line:?}"))),
    }
}
