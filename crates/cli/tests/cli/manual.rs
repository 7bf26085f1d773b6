//! What the program writes about itself.

use crate::support::{finished, leasehold};

#[test]
fn completions_are_written_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = finished(&mut leasehold(["completions", shell])).well();
        assert!(script.contains("leasehold") && script.contains("wait-forever"), "{shell}");
        assert!(!script.contains("__guard"), "{shell}");
    }
}

#[test]
fn the_manual_tells_of_every_command_and_code() {
    let page = finished(&mut leasehold(["man"])).well();
    assert!(page.contains(".TH") && !page.contains("__guard"));
    let words = [
        "run",
        "ls",
        "show",
        "release",
        "doctor",
        "quorum",
        "health",
        "bench",
        "completions",
        "man",
    ];
    for word in words {
        assert!(page.contains(&format!("LEASEHOLD {}", word.to_uppercase())), "{word}");
    }
    for code in ["64", "69", "75", "76", "78", "126", "127"] {
        assert!(page.contains(code), "{code}");
    }
}

#[test]
fn help_and_version_are_no_mistakes() {
    assert!(finished(&mut leasehold(["--help"])).well().contains("REDIS_PASSWORD"));
    assert!(finished(&mut leasehold(["run", "--help"])).well().contains("LEASEHOLD_FENCE"));
    assert_eq!(
        finished(&mut leasehold(["--version"])).well().trim(),
        concat!("leasehold ", env!("CARGO_PKG_VERSION"))
    );
}
