use std::{
    env,
    fs::File,
    io::{Read, Write},
    num::NonZero,
    os::{fd::AsFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use leasehold_testkit::Patience;
use nix::{
    pty::{Winsize, openpty},
    unistd::{setsid, ttyname},
};

use super::LIMIT;

const ROWS: u16 = 30;
const COLUMNS: u16 = 120;
/// The terminal that the child program takes, and what it becomes.
const PATH: &str = "LEASEHOLD_TEST_TTY";
const WORDS: &str = "LEASEHOLD_TEST_WORDS";

/// A terminal with a program in it, which leads a session; killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    path: PathBuf,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    /// Starts a program by words without line breaks, with variables.
    pub(crate) fn start<'a>(
        words: &[&str],
        variables: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Self {
        Self::of_size((ROWS, COLUMNS), words, variables)
    }

    /// The same in a terminal of so many rows and columns.
    pub(crate) fn of_size<'a>(
        (rows, columns): (u16, u16),
        words: &[&str],
        variables: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).expect("the system has terminals");
        let path = ttyname(pair.slave.as_fd()).expect("a terminal has a name");
        let slave = || Stdio::from(pair.slave.try_clone().expect("it can be copied"));
        let mut command = Command::new(env::current_exe().expect("a test knows its program"));
        command.args(["support::pty::child_program", "--exact", "--nocapture"]);
        command
            .env(PATH, &path)
            .env(WORDS, words.join("\n"))
            .env("TERM", "xterm-256color")
            .env("PS1", "$ ");
        command.envs(variables).stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().expect("the test starts itself");
        let master = File::from(pair.master);
        let [rows, columns] =
            [rows, columns].map(|cells| NonZero::new(cells).expect("it is not zero"));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (mut output, shown) =
            (master.try_clone().expect("it can be copied"), Arc::clone(&screen));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().expect("nobody panics with it").process(&bytes[..count]);
            }
        });
        Self { child, keys: master, path, screen }
    }

    /// Types some keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Gives it another size, as a window does; what is drawn beyond the first one is not seen.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let [rows, columns] = [rows, columns].map(|cells| cells.to_string());
        let mut set = Command::new("stty");
        set.arg("-F").arg(&self.path).args(["rows", &rows, "cols", &columns]);
        assert!(set.status().expect("stty is there").success());
    }

    /// The process of the program.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().expect("a process id")
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        self.screen.lock().expect("nobody panics with it").screen().contents()
    }

    /// Returns the screen once it fits.
    pub(crate) fn wait_for(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let seen = Patience::of(LIMIT).until(|| Some(self.text()).filter(|text| fits(text)));
        seen.unwrap_or_else(|| panic!("not seen: {what}; the screen is\n{}", self.text()))
    }

    /// Waits until the screen has some text.
    pub(crate) fn shows(&self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }

    /// How the program has ended.
    pub(crate) fn code(&mut self) -> Option<i32> {
        Patience::of(LIMIT).until(|| self.child.try_wait().expect("a child can be asked"))?.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Leads a session on the terminal, and becomes the program.
#[test]
fn child_program() {
    let (Ok(path), Ok(words)) = (env::var(PATH), env::var(WORDS)) else { return };
    setsid().expect("a child leads no group");
    // The first terminal that a leader opens controls its session.
    let _tty =
        File::options().read(true).write(true).open(PathBuf::from(path)).expect("it is there");
    let mut words = words.split('\n');
    let error = Command::new(words.next().expect("a program")).args(words).exec();
    panic!("{error}");
}
