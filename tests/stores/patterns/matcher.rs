/// The matcher of Lua 5.1 (`lstrlib.c`), for the parts of its patterns that the scripts use. It counts its steps.
pub(super) struct Matcher<'a> {
    pattern: &'a [u8],
    text: &'a [u8],
    /// Where each capture begins and ends; no end while it is open.
    captures: Vec<(usize, Option<usize>)>,
    steps: u64,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(pattern: &'a str, text: &'a [u8]) -> Self {
        Self { pattern: pattern.as_bytes(), text, captures: Vec::new(), steps: 0 }
    }

    /// What `string.find` returns, as texts: first and last character, and the captures; nothing if there is no match.
    /// And how many steps it took.
    pub(super) fn find(mut self) -> (Vec<Vec<u8>>, u64) {
        let anchored = self.pattern.first() == Some(&b'^');
        let from = usize::from(anchored);
        let last = if anchored { 0 } else { self.text.len() };
        for begin in 0..=last {
            self.captures.clear();
            let Some(end) = self.step(begin, from) else { continue };
            let capture = |(begin, end): &(usize, Option<usize>)| {
                self.text[*begin..end.expect("a closed capture")].to_vec()
            };
            let whole = [begin + 1, end].map(|number| number.to_string().into_bytes());
            return (
                whole.into_iter().chain(self.captures.iter().map(capture)).collect(),
                self.steps,
            );
        }
        (Vec::new(), self.steps)
    }

    /// Matches the rest of the pattern from `at` on; the end of the match.
    fn step(&mut self, mut at: usize, mut pattern: usize) -> Option<usize> {
        loop {
            self.steps += 1;
            match self.pattern.get(pattern) {
                None => return Some(at),
                Some(b'(') => {
                    self.captures.push((at, None));
                    let end = self.step(at, pattern + 1);
                    if end.is_none() {
                        self.captures.pop();
                    }
                    return end;
                }
                Some(b')') => {
                    let open = self.captures.iter().rposition(|(_, end)| end.is_none());
                    let open = open.expect("a capture that is open");
                    self.captures[open].1 = Some(at);
                    let end = self.step(at, pattern + 1);
                    if end.is_none() {
                        self.captures[open].1 = None;
                    }
                    return end;
                }
                Some(b'$') if pattern + 1 == self.pattern.len() => {
                    return (at == self.text.len()).then_some(at);
                }
                Some(_) => {}
            }
            let next = self.end_of_class(pattern);
            match self.pattern.get(next) {
                Some(b'?') => {
                    if self.is_one(at, pattern, next)
                        && let Some(end) = self.step(at + 1, next + 1)
                    {
                        return Some(end);
                    }
                    pattern = next + 1;
                }
                Some(b'*') => return self.expand(at, pattern, next),
                Some(b'+') => {
                    let one = self.is_one(at, pattern, next);
                    return if one { self.expand(at + 1, pattern, next) } else { None };
                }
                Some(b'-') => panic!("the scripts have no shortest runs"),
                _ => {
                    if !self.is_one(at, pattern, next) {
                        return None;
                    }
                    (at, pattern) = (at + 1, next);
                }
            }
        }
    }

    /// The longest run that lets the rest match.
    fn expand(&mut self, at: usize, pattern: usize, next: usize) -> Option<usize> {
        let mut run = 0;
        while self.is_one(at + run, pattern, next) {
            run += 1;
        }
        (0..=run).rev().find_map(|run| self.step(at + run, next + 1))
    }

    fn end_of_class(&self, pattern: usize) -> usize {
        match self.pattern[pattern] {
            b'%' => pattern + 2,
            b'[' => {
                let mut at = pattern + 1 + usize::from(self.pattern[pattern + 1] == b'^');
                loop {
                    at += if self.pattern[at] == b'%' { 2 } else { 1 };
                    if self.pattern[at] == b']' {
                        return at + 1;
                    }
                }
            }
            _ => pattern + 1,
        }
    }

    /// Whether one character is of a class.
    fn is_one(&mut self, at: usize, pattern: usize, next: usize) -> bool {
        self.steps += 1;
        let Some(&c) = self.text.get(at) else { return false };
        let class = &self.pattern[pattern..next];
        match class {
            [b'.'] => true,
            [b'%', letter] => is_of(c, *letter),
            [b'[', b'^', set @ .., b']'] => !is_in(c, set),
            [b'[', set @ .., b']'] => is_in(c, set),
            [own] => c == *own,
            other => panic!("{other:?} is not known"),
        }
    }
}

fn is_in(c: u8, set: &[u8]) -> bool {
    match set {
        [] => false,
        [b'%', letter, rest @ ..] => is_of(c, *letter) || is_in(c, rest),
        [from, b'-', to, rest @ ..] => (*from..=*to).contains(&c) || is_in(c, rest),
        [own, rest @ ..] => c == *own || is_in(c, rest),
    }
}

/// Whether a character is of the class of a letter behind `%`.
fn is_of(c: u8, letter: u8) -> bool {
    let is = match letter.to_ascii_lowercase() {
        b'd' => c.is_ascii_digit(),
        // As in C: with the vertical tab.
        b's' => c.is_ascii_whitespace() || c == 0x0b,
        b'a' => c.is_ascii_alphabetic(),
        b'x' => c.is_ascii_hexdigit(),
        _ => {
            assert!(!letter.is_ascii_alphanumeric(), "%{} is not known", char::from(letter));
            return c == letter;
        }
    };
    is == letter.is_ascii_lowercase()
}
