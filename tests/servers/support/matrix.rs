use std::{env, fmt::Write as _, fs, panic::Location, path::Path};

/// Names the folder into which every row writes what was seen; `scripts/prove.sh` makes a table of
/// it.
const FOLDER: &str = "LEASEHOLD_FAULT_MATRIX";
/// How often each arm of a row runs; once unless said otherwise.
const REPEATS: &str = "LEASEHOLD_FAULT_REPEATS";

/// A row with its test, which has the name of its file: both arms, or the one of a row whose whole
/// protection is that it says clearly what is wrong.
macro_rules! row {
    ($name:ident: $protected:expr, $control:expr; $($field:ident: $text:expr,)+) => {
        #[test]
        fn $name() {
            $crate::matrix::Row { id: stringify!($name), $($field: $text,)+ }
                .run($protected, $control);
        }
    };
    ($name:ident: $protected:expr; $($field:ident: $text:expr,)+) => {
        #[test]
        fn $name() {
            let control = "none: a clear error is the protection";
            $crate::matrix::Row { id: stringify!($name), $($field: $text,)+ control }
                .run_clear_error($protected);
        }
    };
}

pub(crate) use row;

/// A fault, what is right when it strikes, and what goes wrong without the protection.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its name: words with hyphens or underscores, the same as that of its file.
    pub(crate) id: &'static str,
    /// What is injected.
    pub(crate) fault: &'static str,
    /// What is right.
    pub(crate) right: &'static str,
    /// What the control does without.
    pub(crate) control: &'static str,
}

impl Row {
    /// Runs both arms. Each asserts, and says what it saw in a few words: the protected one that
    /// all is right, the control that damage is done; one that stays clean has to panic.
    #[track_caller]
    pub(crate) fn run(&self, protected: fn() -> String, control: fn() -> String) {
        let protected = repeated(protected);
        self.tell(&protected, &repeated(control));
    }

    /// Runs a row whose whole protection is that it says clearly what is wrong.
    #[track_caller]
    pub(crate) fn run_clear_error(&self, protected: fn() -> String) {
        self.tell(&repeated(protected), "a clear error is the protection");
    }

    #[track_caller]
    fn tell(&self, protected: &str, control: &str) {
        let id = self.id.replace('_', "-");
        println!("{id}: {protected}; control: {control}");
        let Ok(folder) = env::var(FOLDER) else { return };
        // The file of a row lies in the folder of its room.
        let room = Path::new(Location::caller().file()).parent().and_then(Path::file_name);
        let room = room.and_then(|room| room.to_str()).expect("the name of a folder");
        let fields = [room, &id, self.fault, self.right, protected, self.control, control];
        let mut text = String::new();
        for field in fields {
            assert!(!field.contains(['\n', '|']), "{field:?} does not fit into a table");
            let _ = writeln!(text, "{field}");
        }
        let file = Path::new(&folder).join(format!("{room}-{id}.row"));
        fs::write(file, text).expect("the folder of the table takes a file");
    }
}

/// Runs an arm as often as asked for, and returns what was seen at last.
fn repeated(arm: fn() -> String) -> String {
    let repeats = env::var(REPEATS).map_or(1, |number| number.parse().expect("a number"));
    let mut seen = arm();
    for _ in 1..repeats {
        seen = arm();
    }
    if repeats > 1 { format!("{seen} ({repeats} runs)") } else { seen }
}
