use std::borrow::Cow;

use leasehold::{Fence, ListedLock, graph::Process, printable};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Style, Stylize},
    text::Line,
    widgets::{Block, Paragraph, Row, Table, TableState, Wrap},
};

use super::{
    looks::{Look, STEPS_PER_SECOND},
    model::{Mode, Model, longest_wait},
};
use crate::{
    json::state,
    words::{columns, lines, middle, short},
};

/// From so many columns on, fences are shown as a whole.
const WIDE: usize = 120;
/// The digits of a fence.
const LONGEST_FENCE: usize = 16;
/// Its last digits behind an ellipsis: the first ones are the same for months.
const SHORT_FENCE: usize = 7;
/// The most lines of an error, a question or a message.
const MOST_LINES: usize = 4;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, address: &str) {
    let width = frame.area().width.into();
    let (head_text, foot_text) = (head_lines(model, address, width), foot_lines(model, width));
    let [head, locks, below, foot] = Layout::vertical([
        Constraint::Length(height(&head_text)),
        Constraint::Percentage(55),
        Constraint::Fill(1),
        Constraint::Length(height(&foot_text)),
    ])
    .areas(frame.area());
    let for_cycles = Constraint::Percentage(if model.shows_cycles { 45 } else { 0 });
    let [processes, cycles] = Layout::horizontal([Constraint::Fill(1), for_cycles]).areas(below);
    frame.render_widget(Paragraph::new(head_text), head);
    draw_locks(frame, model, locks);
    if let Some(look) = &model.look {
        let block = Block::bordered().title(" processes ");
        let list = process_lines(look, block.inner(processes).width.into());
        frame.render_widget(Paragraph::new(list).block(block), processes);
        if model.shows_cycles {
            let block = Block::bordered().title(" possible cycles ");
            let list = Paragraph::new(cycle_lines(look)).wrap(Wrap { trim: true }).block(block);
            frame.render_widget(list, cycles);
        }
    }
    frame.render_widget(Paragraph::new(foot_text).bold(), foot);
}

fn height(text: &[Line<'_>]) -> u16 {
    u16::try_from(text.len()).unwrap_or(u16::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn head_lines(model: &Model, address: &str, width: usize) -> Vec<Line<'static>> {
    let title = |told: &str| {
        let room = width.saturating_sub(columns("leasehold top    ") + columns(told));
        Line::from(format!("leasehold top  {}  {told}", middle(address, room))).bold()
    };
    let Some(look) = &model.look else { return vec![title("looking ...")] };
    let waiting: usize = look.locks.iter().map(|lock| lock.lease.waiters.len()).sum();
    let paused = if model.is_paused { "  PAUSED" } else { "" };
    let counts = format!(
        "{} locks  {waiting} waiting  {} processes{paused}",
        look.locks.len(),
        busy(look).count()
    );
    let seconds = look.took.as_secs_f64().max(1.0);
    let rates = [
        format!("hand-overs {:.1}/s", model.changes.hand_overs),
        format!("losses {:.1}/s", model.changes.losses),
        format!("steps {:.0}/s (at most {STEPS_PER_SECOND})", look.steps as f64 / seconds),
        format!("look {}", short(look.took)),
    ];
    let rates = lines(rates.iter().map(String::as_str), "  ", width);
    let mut unread = Vec::new();
    if let Some(error) = look.unread.first() {
        let text = format!("INCOMPLETE: {}", printable(&error.to_string()));
        unread = lines(text.split(' '), " ", width);
        unread.truncate(MOST_LINES);
    }
    let below = rates.into_iter().chain(unread).map(Line::from);
    [title(&counts)].into_iter().chain(below).collect()
}

fn draw_locks(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    const HEADS: [&str; 8] =
        ["LOCK", "STATE", "WAITING", "LONGEST", "HELD", "TTL LEFT", "FENCE", "HOLDER"];
    let block = Block::bordered();
    let locks = model.locks();
    let filter = match model.filter.as_str() {
        "" => String::new(),
        filter => format!(", filter {}", printable(filter)),
    };
    let title = format!(" locks by {}{filter} ", model.sort.title());
    let selected = model.selected(&locks);
    // Rows far from the selected one are not seen: ten thousand of them would only cost time.
    let first = selected.saturating_sub(usize::from(area.height));
    let shown: Vec<_> = locks.into_iter().skip(first).take(2 * usize::from(area.height)).collect();
    let widths = widths(block.inner(area).width.into(), &shown);
    let rows = shown.into_iter().map(|lock| row(lock, model, &widths));
    let lengths = widths.map(|width| Constraint::Length(width.try_into().unwrap_or(u16::MAX)));
    let table = Table::new(rows, lengths)
        .header(Row::new(HEADS).bold())
        .block(block.title(title))
        .row_highlight_style(Style::new().reversed());
    let mut at = TableState::default().with_selected(Some(selected - first));
    frame.render_stateful_widget(table, area, &mut at);
}

/// The widths of the columns: names and holders share what the others leave.
fn widths(width: usize, locks: &[&ListedLock]) -> [usize; 8] {
    let [state, waiting, longest, held, ttl] = [5, 7, 7, 7, 8];
    let fence = if width + 2 < WIDE { SHORT_FENCE } else { LONGEST_FENCE };
    let gaps = 7;
    let room = width.saturating_sub(state + waiting + longest + held + ttl + fence + gaps);
    let names = locks.iter().map(|lock| columns(&printable(lock.name.as_str())));
    let holders = locks.iter().map(|lock| columns(&lock.lease.label));
    let longest_name = names.max().unwrap_or_default().max(columns("LOCK"));
    let name = share(longest_name, holders.max().unwrap_or_default(), room);
    [name, state, waiting, longest, held, ttl, fence, room - name]
}

/// How many columns the first of two texts gets of `room`: half, or more if the other needs less.
fn share(first: usize, second: usize, room: usize) -> usize {
    first.min((room / 2).max(room.saturating_sub(second)))
}

/// A fence in so many columns.
fn fence(fence: Fence, width: usize) -> String {
    let all = fence.to_string();
    match all.len().checked_sub(width) {
        None | Some(0) => all,
        Some(more) => format!("…{}", &all[more + 1..]),
    }
}

fn row(lock: &ListedLock, model: &Model, widths: &[usize; 8]) -> Row<'static> {
    let lease = &lock.lease;
    let wait = if lease.waiters.is_empty() { "-".into() } else { short(longest_wait(lock)) };
    Row::new([
        middle(&printable(lock.name.as_str()), widths[0]),
        if model.looks_dead(lock) { "dead?" } else { state(lease) }.into(),
        lease.waiters.len().to_string(),
        wait,
        short(lease.held_for),
        short(lease.remaining),
        fence(lease.fence, widths[6]),
        middle(&lease.label, widths[7]),
    ])
}

/// The processes that wait or hold a lock: nobody holds one that is kept closed.
fn busy(look: &Look) -> impl Iterator<Item = Process> {
    look.graph.processes.iter().filter_map(|process| {
        let mut process = process.clone();
        process.holds.retain(|hold| !hold.kept);
        (!process.holds.is_empty() || !process.waits.is_empty()).then_some(process)
    })
}

/// The processes, those that wait first.
fn process_lines(look: &Look, width: usize) -> Vec<Line<'static>> {
    let mut processes: Vec<_> = busy(look).collect();
    processes.sort_by_key(|process| std::cmp::Reverse((process.waits.len(), process.holds.len())));
    processes.iter().take(100).map(|process| process_line(process, width)).collect()
}

/// A process in so many columns: its label and the first lock are seen.
fn process_line(process: &Process, width: usize) -> Line<'static> {
    let holds: Vec<_> = process.holds.iter().map(|hold| printable(hold.lock.as_str())).collect();
    let waits: Vec<_> = process.waits.iter().map(|wait| printable(wait.lock.as_str())).collect();
    let room = width.saturating_sub(columns(" waits for "));
    let longest = holds.iter().chain(&waits).map(|name| columns(name)).max().unwrap_or_default();
    let most = share(columns(&process.label), longest, room);
    let label = middle(&process.label, most);
    let (holds, waits) = (first_names(&holds, room - most), first_names(&waits, room - most));
    Line::from(match (process.holds.is_empty(), process.waits.is_empty()) {
        (_, true) => format!("{label} holds {holds}"),
        (true, false) => format!("{label} waits for {waits}"),
        (false, false) => format!("{label} waits for {waits}, holds {holds}"),
    })
}

/// The first names of many, each in so many columns.
fn first_names(names: &[Cow<'_, str>], width: usize) -> String {
    const SHOWN: usize = 4;
    let mut shown: Vec<_> = names.iter().take(SHOWN).map(|name| middle(name, width)).collect();
    if let Some(more @ 1..) = names.len().checked_sub(SHOWN) {
        shown.push(format!("{more} more"));
    }
    shown.join(" ")
}

fn cycle_lines(look: &Look) -> Vec<Line<'static>> {
    let cycles = look.graph.possible_cycles();
    if cycles.is_empty() {
        return vec![Line::from("none")];
    }
    cycles.iter().map(|cycle| Line::from(printable(&cycle.to_string()).into_owned())).collect()
}

const KEYS: [&str; 9] = [
    "w wanted",
    "l wait",
    "h hold",
    "n name",
    "c cycles",
    "/ filter",
    "space pause",
    "r end lease",
    "q quit",
];

/// What stands below: all of it is seen, in as many lines as it takes.
fn foot_lines(model: &Model, width: usize) -> Vec<Line<'static>> {
    let text = match &model.mode {
        Mode::Filter => {
            format!("filter: {}_  (enter keeps it, escape clears it)", printable(&model.filter))
        }
        Mode::Ask(lock) => question(lock, width),
        Mode::Browse if model.message.is_empty() => {
            return lines(KEYS, "  ", width).into_iter().map(Line::from).collect();
        }
        Mode::Browse => printable(&model.message).into(),
    };
    lines(text.split(' '), " ", width).into_iter().take(MOST_LINES).map(Line::from).collect()
}

/// Asks about a lease, in one line of a terminal of 80 columns.
fn question(lock: &ListedLock, width: usize) -> String {
    let lease = &lock.lease;
    let fence = fence(lease.fence, if width < WIDE { SHORT_FENCE } else { LONGEST_FENCE });
    let ask = |holder: &str, name: &str| {
        format!("end the lease of {holder} on {name} (fence {fence})? [y/N]")
    };
    let (holder, name) = (&lease.label, printable(lock.name.as_str()));
    let room = width.saturating_sub(columns(&ask("", "")));
    let most = share(columns(holder), columns(&name), room);
    ask(&middle(holder, most), &middle(&name, room - most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::tests::{at, lock, look};

    /// The number of processes in the head, and the lines of their pane.
    fn shown(locks: Vec<ListedLock>) -> (bool, Vec<String>) {
        let mut model = Model::default();
        model.on_look(look(locks, at(0)));
        let lines = process_lines(model.look.as_ref().unwrap(), 80);
        let counted = format!("  {} processes", lines.len());
        let head = head_lines(&model, "redis://localhost", 80);
        let is_in_head = head.iter().any(|line| line.to_string().contains(&counted));
        (is_in_head, lines.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn nobody_holds_a_lock_that_is_kept_closed() {
        let mut kept = lock("a", 1, &[]);
        kept.lease.kept = true;
        assert_eq!(shown(vec![kept.clone()]), (true, Vec::new()));
        let held = vec![kept.clone(), lock("b", 1, &[])];
        assert_eq!(shown(held), (true, vec!["holder holds b".into()]));
        kept.lease.waiters = lock("a", 1, &[9]).lease.waiters;
        kept.lease.waiters[0].id = "00000000-0000-4000-8000-000000000001:1".parse().unwrap();
        assert_eq!(shown(vec![kept]), (true, vec!["waiter waits for a".into()]));
    }
}
