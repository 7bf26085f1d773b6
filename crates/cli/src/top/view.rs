use leasehold::{ListedLock, graph::Process, printable};
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
use crate::{json::state, words::short};

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, address: &str) {
    let [head, locks, below, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Percentage(55),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let for_cycles = Constraint::Percentage(if model.shows_cycles { 45 } else { 0 });
    let [processes, cycles] = Layout::horizontal([Constraint::Fill(1), for_cycles]).areas(below);
    frame.render_widget(Paragraph::new(head_lines(model, address)), head);
    draw_locks(frame, model, locks);
    if let Some(look) = &model.look {
        let block = Block::bordered().title(" processes ");
        frame.render_widget(Paragraph::new(process_lines(look)).block(block), processes);
        if model.shows_cycles {
            let block = Block::bordered().title(" possible cycles ");
            let list = Paragraph::new(cycle_lines(look)).wrap(Wrap { trim: true }).block(block);
            frame.render_widget(list, cycles);
        }
    }
    frame.render_widget(Line::from(foot_line(model)).bold(), foot);
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn head_lines(model: &Model, address: &str) -> Vec<Line<'static>> {
    let Some(look) = &model.look else {
        return vec![Line::from(format!("leasehold top  {address}  looking ...")).bold()];
    };
    let waiting: usize = look.locks.iter().map(|lock| lock.lease.waiters.len()).sum();
    let paused = if model.is_paused { "  PAUSED" } else { "" };
    let first = format!(
        "leasehold top  {address}  {} locks  {waiting} waiting  {} processes{paused}",
        look.locks.len(),
        look.graph.processes.len()
    );
    let seconds = look.took.as_secs_f64().max(1.0);
    let unread = match look.unread.first() {
        Some(error) => format!("  INCOMPLETE: {}", printable(&error.to_string())),
        None => String::new(),
    };
    let second = format!(
        "hand-overs {:.1}/s  losses {:.1}/s  commands {:.0}/s (at most {STEPS_PER_SECOND})  look {}{unread}",
        model.changes.hand_overs,
        model.changes.losses,
        look.steps as f64 / seconds,
        short(look.took),
    );
    vec![Line::from(first).bold(), Line::from(second)]
}

fn draw_locks(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    const COLUMNS: [(&str, Constraint); 8] = [
        ("LOCK", Constraint::Fill(3)),
        ("STATE", Constraint::Length(5)),
        ("WAITING", Constraint::Length(7)),
        ("LONGEST WAIT", Constraint::Length(12)),
        ("HELD FOR", Constraint::Length(8)),
        ("TTL LEFT", Constraint::Length(8)),
        ("FENCE", Constraint::Length(16)),
        ("HOLDER", Constraint::Fill(4)),
    ];
    let locks = model.locks();
    let filter = match model.filter.as_str() {
        "" => String::new(),
        filter => format!(", filter {}", printable(filter)),
    };
    let title = format!(" locks by {}{filter} ", model.sort.title());
    let selected = model.selected(&locks);
    // Rows far from the selected one are not seen: ten thousand of them would only cost time.
    let first = selected.saturating_sub(usize::from(area.height));
    let rows = locks.iter().skip(first).take(2 * usize::from(area.height)).map(|lock| row(lock));
    let table = Table::new(rows, COLUMNS.map(|(_, width)| width))
        .header(Row::new(COLUMNS.map(|(head, _)| head)).bold())
        .block(Block::bordered().title(title))
        .row_highlight_style(Style::new().reversed());
    let mut at = TableState::default().with_selected(Some(selected - first));
    frame.render_stateful_widget(table, area, &mut at);
}

fn row(lock: &ListedLock) -> Row<'static> {
    let lease = &lock.lease;
    let wait = if lease.waiters.is_empty() { "-".into() } else { short(longest_wait(lock)) };
    Row::new([
        printable(lock.name.as_str()).into(),
        state(lease).into(),
        lease.waiters.len().to_string(),
        wait,
        short(lease.held_for),
        short(lease.remaining),
        lease.fence.to_string(),
        lease.label.clone(),
    ])
}

/// The processes, those that wait first.
fn process_lines(look: &Look) -> Vec<Line<'static>> {
    let mut processes: Vec<_> = look.graph.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse((process.waits.len(), process.holds.len())));
    processes.into_iter().take(100).map(process_line).collect()
}

fn process_line(process: &Process) -> Line<'static> {
    let holds = process.holds.iter().map(|hold| hold.lock.as_str());
    let waits = process.waits.iter().map(|wait| wait.lock.as_str());
    let (holds, waits) = (some(holds, process.holds.len()), some(waits, process.waits.len()));
    let text = match (process.holds.is_empty(), process.waits.is_empty()) {
        (_, true) => format!("{} holds {holds}", process.label),
        (true, false) => format!("{} waits for {waits}", process.label),
        (false, false) => format!("{} waits for {waits}, holds {holds}", process.label),
    };
    Line::from(printable(&text).into_owned())
}

/// The first names of many.
fn some<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    const SHOWN: usize = 4;
    let mut shown: Vec<_> = names.take(SHOWN).map(str::to_owned).collect();
    if count > SHOWN {
        shown.push(format!("{} more", count - SHOWN));
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

fn foot_line(model: &Model) -> String {
    match &model.mode {
        Mode::Filter => format!("filter: {}_  (enter keeps it, escape clears it)", printable(&model.filter)),
        Mode::Ask(lock) => format!(
            "end the lease of {} on {} (fence {})? [y/N]",
            lock.lease.label,
            printable(lock.name.as_str()),
            lock.lease.fence
        ),
        Mode::Look if !model.message.is_empty() => printable(&model.message).into(),
        Mode::Look => "w wanted  l longest wait  h longest hold  n name  c cycles  / filter  space pause  r release  q quit".into(),
    }
}
