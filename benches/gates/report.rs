/// The rounds of each row, in the order in which the rows were measured.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<(&'static str, Vec<Pair>)>);

/// Writes per second of a round without the gate, and of the round through it that followed.
type Pair = (f64, f64);

impl Report {
    /// Adds a round without the gate and the round through it that followed.
    pub(crate) fn add(&mut self, row: &'static str, plain: f64, gated: f64) {
        match self.0.last_mut() {
            Some((last, rounds)) if *last == row => rounds.push((plain, gated)),
            _ => self.0.push((row, vec![(plain, gated)])),
        }
    }

    /// Prints a table for people, then a line of JSON per row for machines.
    pub(crate) fn print(&self) {
        println!("writes per second; medians of interleaved rounds (least..most)\n");
        println!("{:<22} {:>30} {:>30} {:>20}", "", "without", "through the gate", "ratio");
        for (row, rounds) in &self.0 {
            let [plain, gated, ratio] = spreads(rounds);
            let ratio = format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.least, ratio.most);
            println!("{row:<22} {:>30} {:>30} {ratio:>20}", plain.shown(), gated.shown());
        }
        println!("\nratio: median of the ratios of two rounds that followed each other.\n");
        for (row, rounds) in &self.0 {
            let [_, gated, ratio] = spreads(rounds);
            let line = serde_json::json!({
                "bench": "gates", "row": format!("writes_per_second/{row}"),
                "value": gated.median, "ratio": ratio.median
            });
            println!("{line}");
        }
    }
}

fn spreads(rounds: &[Pair]) -> [Spread; 3] {
    let of: [fn(&Pair) -> f64; 3] = [|pair| pair.0, |pair| pair.1, |(plain, gated)| gated / plain];
    of.map(|value| Spread::of(rounds.iter().map(value)))
}

/// Median, least and most of some values.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self { median: at(values.len() / 2), least: at(0), most: at(last) }
    }

    fn shown(&self) -> String {
        format!("{:.0} ({:.0}..{:.0})", self.median, self.least, self.most)
    }
}
