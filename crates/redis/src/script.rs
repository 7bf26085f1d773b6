/// What makes a script ask for the role of its server first.
const MASTER: &str = include_str!("lua/commands/master.lua");

/// A Lua script and its digest.
#[derive(Debug)]
pub struct Script {
    pub(super) plain: Text,
    /// The same script, which first looks whether its server is a master.
    pub(super) proving: Text,
}

/// The text of a script and its digest.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) body: String,
    pub(super) sha: String,
}

impl Script {
    /// Takes a script's text.
    pub fn new(body: impl Into<String>) -> Self {
        let body = body.into();
        // A line with flags stays the first one.
        let first = if body.starts_with("#!") {
            body.find('\n').map_or(body.len(), |at| at + 1)
        } else {
            0
        };
        let (flags, rest) = body.split_at(first);
        let proving = Text::new([flags, &on_one_line(MASTER), rest].concat());
        Self { plain: Text::new(body), proving }
    }
}

/// A part of a script without its comments and line ends, so that what follows keeps the numbers of its lines: a
/// server names them in errors.
fn on_one_line(part: &str) -> String {
    let code = part.lines().map(str::trim).filter(|line| !line.starts_with("--"));
    code.flat_map(|line| [line, " "]).collect()
}

impl Text {
    fn new(body: String) -> Self {
        let sha = redis::Script::new(&body).get_hash().to_owned();
        Self { body, sha }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_look_at_the_role_comes_first_but_for_flags() {
        let script = Script::new("return 1");
        let look = on_one_line(MASTER);
        assert!(look.starts_with("do local told") && !look.contains('\n'), "{look}");
        assert_eq!(script.proving.body, look.clone() + "return 1");
        let flagged = Script::new("#!lua flags=allow-oom\nreturn 1");
        let expected = format!("#!lua flags=allow-oom\n{look}return 1");
        assert_eq!(flagged.proving.body, expected);
        assert_ne!(flagged.proving.sha, flagged.plain.sha);
    }
}
