//! How a Cluster of three masters compares with three servers that stand apart, and with a Cluster of
//! one master.

use crate::{
    site::Topology,
    table::{Key, Table},
};

/// The least that each ratio is to be.
const GOAL: f64 = 0.9;

const LEGEND: &str = "\
wall: rates as they were measured; all servers and clients share the cores of the machine, so more
masters do not make more. processor: masters µs of the other topology divided by those of the Cluster
of 3; that is how rates compare when each master has a core of its own, and clients keep up.";

/// Prints the ratios of what was measured, and whether they are large enough.
pub(crate) fn print(tables: &[Table]) {
    let mut lines = Vec::new();
    for table in tables.iter().filter(|table| ["scale", "hand-overs"].contains(&table.part)) {
        for key in table.keys_of(&Topology::Cluster(3)) {
            let of = |topology: Topology| Key { site: topology.to_string(), ..key.clone() };
            let rate = table.first_column();
            let row = |what: &str| format!("{}, {}, {}: {what}", table.part, key.load, key.subject);
            lines.push((
                row("wall, beside 3 servers"),
                table.ratio(&key, &of(Topology::Apart), rate),
            ));
            for (other, what) in [
                (Topology::Apart, "processor, beside 3 servers"),
                (Topology::Cluster(1), "processor, beside a Cluster of 1"),
            ] {
                lines.push((row(what), table.ratio(&of(other), &key, "master_micros")));
            }
        }
    }
    if lines.is_empty() {
        return;
    }
    println!("\nhow a Cluster of 3 masters scales\n");
    // The sharded floor runs on Clusters alone.
    for (what, spread) in lines.into_iter().filter(|(_, spread)| spread.median.is_finite()) {
        let verdict = if spread.median >= GOAL { "reached" } else { "MISSED" };
        println!("{what:<80}{:>24}   ≥ {GOAL:<5}{verdict}", spread.shown(2));
    }
    println!("\n{LEGEND}\n");
}
