//! What is the fault of this process, and not the server's: no file descriptors, an executor that is blocked
//! or that nobody drives, no tokio runtime. Each is told as what it is, and nothing panics.

mod descriptors;
mod executor;
mod reactor;

/// What is said of a server that is silent, and of no other failure.
const OF_THE_SERVER: [&str; 4] = [
    "the server has not answered",
    "the server did not answer",
    "check that the server",
    "check server",
];

/// Whether a text is about this process, with words of the remedy, and not about the server.
#[track_caller]
fn is_ours(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
    for word in OF_THE_SERVER {
        assert!(!text.contains(word), "{word:?} in: {text}");
    }
}
