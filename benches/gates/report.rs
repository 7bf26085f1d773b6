use crate::figures::Spread;

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
            let (plain, gated, ratio) = (plain.shown(0), gated.shown(0), ratio.shown(2));
            println!("{row:<22} {plain:>30} {gated:>30} {ratio:>20}");
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
