use super::{Key, Load, Site, Subject};
use crate::table::Table;

/// How much faster than the fastest peer a quorum is to be where nobody waits.
const UNCONTENDED: f64 = 1.5;

/// The same where all want one lock.
const CONTENDED: f64 = 5.0;

/// Prints which targets were reached, and what servers that are down cost.
pub(super) fn print(table: &Table) {
    println!("\nbeside the fastest peer of each round\n");
    for site in Site::ALL {
        for load in Load::ALL {
            let goal = if load.has_own_names() { UNCONTENDED } else { CONTENDED };
            let key = |subject| Key { site, load, subject };
            let own = key(Subject::Leasehold);
            let ratios = Subject::PEERS.into_iter().filter_map(|peer| ratio(table, own, key(peer)));
            let Some(ratio) = ratios.min_by(f64::total_cmp) else { continue };
            let verdict = if ratio >= goal { "reached" } else { "MISSED" };
            println!("{:<28}{ratio:>8.2}   ≥ {goal:<6}{verdict}", format!("{site}, {load}"));
        }
    }
    println!("\nLeasehold with servers down, beside all up\n");
    for site in Site::ALL.into_iter().filter(|site| !site.is_whole()) {
        for load in Load::ALL {
            let down = Key { site, load, subject: Subject::Leasehold };
            let up = Key { site: Site { down: 0, ..site }, ..down };
            let Some(ratio) = ratio(table, down, up) else { continue };
            println!("{:<28}{ratio:>8.2}", format!("{site}, {load}"));
        }
    }
}

/// The rate of a row divided by that of another one, if both were measured.
fn ratio(table: &Table, one: Key, other: Key) -> Option<f64> {
    let ratio = table.ratio(&one.row(), &other.row(), table.first_column()).median;
    Some(ratio).filter(|ratio| ratio.is_finite())
}
