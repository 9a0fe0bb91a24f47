//! What `top` shows, and what keys and answers change of it. Pure.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use redelay::inspector::Overview;

use crate::escape;
use crate::payload::Reader;
use crate::state::State as Health;
use crate::table::Cell;

/// A smaller terminal shows nothing of use.
pub(super) const LEAST: (u16, u16) = (60, 12);
/// How many of the queues that are not in sight one look asks about.
const OTHERS: usize = 100;
/// The lines that are not queues: two heads, the columns, and the keys.
const AROUND: usize = 4;

/// A queue in the table.
#[derive(Clone, Default)]
pub(super) struct Queue {
    /// `None` until it was asked about.
    pub(super) overview: Option<Overview>,
    pub(super) reader: Option<Reader>,
}

/// What the table is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    State,
    Name,
    Pending,
    NextDue,
    Overdue,
    Ready,
    InFlight,
    Dead,
}

impl Sort {
    const ALL: [Self; 8] = [
        Self::State,
        Self::Name,
        Self::Pending,
        Self::NextDue,
        Self::Overdue,
        Self::Ready,
        Self::InFlight,
        Self::Dead,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Name => "name",
            Self::Pending => "pending",
            Self::NextDue => "next due",
            Self::Overdue => "overdue for",
            Self::Ready => "ready",
            Self::InFlight => "in flight",
            Self::Dead => "dead",
        }
    }

    /// The order of two queues: the worst, the most, or the earliest first.
    fn compare(self, one: &Overview, other: &Overview) -> Ordering {
        let most = |count: fn(&Overview) -> Option<u64>| count(other).cmp(&count(one));
        match self {
            Self::State => Health::of(one).cmp(&Health::of(other)),
            Self::Name => Ordering::Equal,
            Self::Pending => most(|queue| queue.pending),
            Self::NextDue => {
                let next = |queue: &Overview| queue.next_due_in.unwrap_or(Duration::MAX);
                next(one).cmp(&next(other))
            }
            Self::Overdue => other.overdue_for.cmp(&one.overdue_for),
            Self::Ready => most(|queue| queue.ready),
            Self::InFlight => most(|queue| queue.in_flight),
            Self::Dead => most(|queue| queue.dead_letters),
        }
    }
}

/// What is due next in the queue that is open.
#[derive(Clone, Default)]
pub(super) struct Next {
    /// The cells of each entry. The last one is the payload.
    pub(super) entries: Vec<Vec<Cell>>,
    /// What the server has refused.
    pub(super) refusal: Option<String>,
}

/// Something that changes what is shown.
pub(super) enum Event {
    Key(KeyEvent),
    /// A search has found these.
    Found(Vec<Bytes>),
    /// A search has ended. It is complete if it has looked at all keys.
    Searched {
        calls: u64,
        refusal: Option<String>,
        is_complete: bool,
    },
    /// The answers of a look, and of the queue that was open, and the servers that have given them.
    Looked(Vec<(Overview, Option<Reader>)>, Option<(Bytes, Next)>, String),
    /// There was no answer.
    Failed(String),
}

/// What is to be done outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    /// Stops the process until the shell continues it.
    Suspend,
    /// Looks at once.
    Look,
    /// Draws everything again.
    Redraw,
}

/// What is shown.
pub(super) struct State {
    /// The server.
    pub(super) title: String,
    pub(super) interval: Duration,
    /// What the names on the server begin with.
    prefix: usize,
    pub(super) size: (u16, u16),
    pub(super) queues: BTreeMap<Bytes, Queue>,
    /// Of the search that is under way.
    found: BTreeSet<Bytes>,
    /// The commands of the last search; `None` until it has ended.
    pub(super) calls: Option<u64>,
    pub(super) sort: Sort,
    pub(super) is_reversed: bool,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) has_values: bool,
    /// The name of the queue under the cursor.
    selected: Option<Bytes>,
    /// The first queue in sight.
    top: usize,
    /// The queue that is open.
    pub(super) open: Option<Bytes>,
    pub(super) next: Next,
    /// The last of the queues out of sight that were asked about.
    asked: Bytes,
    /// Why there was no answer.
    pub(super) failure: Option<String>,
    search_refusal: Option<String>,
}

impl State {
    /// `prefix` is the length of what all names begin with, and is not shown.
    pub(super) fn new(title: String, interval: Duration, prefix: usize, size: (u16, u16)) -> Self {
        Self {
            title,
            interval,
            prefix,
            size,
            queues: BTreeMap::new(),
            found: BTreeSet::new(),
            calls: None,
            sort: Sort::State,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            has_values: false,
            selected: None,
            top: 0,
            open: None,
            next: Next::default(),
            asked: Bytes::new(),
            failure: None,
            search_refusal: None,
        }
    }

    pub(super) fn is_too_small(&self) -> bool {
        self.size.0 < LEAST.0 || self.size.1 < LEAST.1
    }

    /// How many queues are in sight.
    fn page(&self) -> usize {
        usize::from(self.size.1).saturating_sub(AROUND).max(1)
    }

    /// The name as its owners have it, escaped.
    pub(super) fn name(&self, name: &[u8]) -> String {
        escape::bytes(name.get(self.prefix..).unwrap_or(name))
    }

    /// The queues that pass the filter, in their order.
    pub(super) fn sorted(&self) -> Vec<&Bytes> {
        let filter = self.filter.to_lowercase();
        let mut names: Vec<_> =
            self.queues.iter().filter(|(name, _)| self.name(name).to_lowercase().contains(&filter)).collect();
        names.sort_by(|(name, queue), (other_name, other)| {
            let order = match (&queue.overview, &other.overview) {
                (Some(one), Some(other)) => self.sort.compare(one, other),
                // What was not asked about yet comes last.
                (one, other) => return one.is_none().cmp(&other.is_none()).then(name.cmp(other_name)),
            };
            let order = order.then_with(|| name.cmp(other_name));
            if self.is_reversed { order.reverse() } else { order }
        });
        names.into_iter().map(|(name, _)| name).collect()
    }

    /// The queues in sight, and which of them has the cursor.
    pub(super) fn in_sight(&self) -> (Vec<&Bytes>, Option<usize>) {
        let sorted = self.sorted();
        let at = self.cursor(&sorted);
        let top = self.top.min(sorted.len().saturating_sub(self.page())).min(at);
        let top = top.max((at + 1).saturating_sub(self.page()));
        let names: Vec<_> = sorted.iter().skip(top).take(self.page()).copied().collect();
        (names, (!sorted.is_empty()).then(|| at - top))
    }

    fn cursor(&self, sorted: &[&Bytes]) -> usize {
        let at = self.selected.as_ref().and_then(|selected| sorted.iter().position(|name| *name == selected));
        at.unwrap_or(0)
    }

    /// What the next look asks about: what is in sight, what was never asked about, and some of the others in
    /// turn.
    pub(super) fn asks(&mut self) -> Vec<Bytes> {
        let mut names: BTreeSet<Bytes> = match &self.open {
            Some(open) => BTreeSet::from([open.clone()]),
            None => self.in_sight().0.into_iter().cloned().collect(),
        };
        let new = self.queues.iter().filter(|(_, queue)| queue.overview.is_none());
        names.extend(new.map(|(name, _)| name.clone()));
        let behind = self.queues.keys().filter(|name| **name > self.asked);
        let others: Vec<Bytes> =
            behind.chain(self.queues.keys()).take(OTHERS.min(self.queues.len())).cloned().collect();
        if let Some(last) = others.last() {
            self.asked = last.clone();
        }
        names.extend(others);
        names.into_iter().collect()
    }

    /// Those in sight whose codec is not known, as far as that can be known.
    pub(super) fn unread(&self) -> BTreeSet<Bytes> {
        let names = match &self.open {
            Some(open) => vec![open],
            None => self.in_sight().0,
        };
        let is_unread = |name: &&Bytes| {
            let reader = self.queues.get(*name).and_then(|queue| queue.reader.as_ref());
            reader.is_none_or(|reader| reader.codec().is_empty())
        };
        names.into_iter().filter(is_unread).cloned().collect()
    }

    /// What the server has refused to say of what is in sight.
    pub(super) fn refusal(&self) -> Option<String> {
        let names = match &self.open {
            Some(open) => vec![open],
            None => self.in_sight().0,
        };
        let of_queues = names.into_iter().filter_map(|name| self.queues.get(name)).filter_map(|queue| {
            let reader = queue.reader.clone().unwrap_or_default();
            crate::queue::refusals(queue.overview.as_ref()?, &reader).into_iter().next()
        });
        let of_next = self.next.refusal.clone().filter(|_| self.open.is_some());
        of_next.into_iter().chain(of_queues).chain(self.search_refusal.clone()).next()
    }

    /// Changes what is shown.
    pub(super) fn on(&mut self, event: Event) -> Option<Action> {
        match event {
            Event::Key(key) => return self.on_key(key),
            Event::Found(names) => {
                for name in names {
                    self.queues.entry(name.clone()).or_default();
                    self.found.insert(name);
                }
            }
            Event::Searched { calls, refusal, is_complete } => {
                let found = std::mem::take(&mut self.found);
                let open = self.open.clone();
                let stays =
                    |name: &Bytes| !is_complete || found.contains(name) || open.as_ref() == Some(name);
                self.queues.retain(|name, _| stays(name));
                (self.calls, self.search_refusal) = (Some(calls), refusal);
                self.failure = None;
            }
            Event::Looked(answers, next, title) => {
                self.title = title;
                for (overview, reader) in answers {
                    if let Some(queue) = self.queues.get_mut(&overview.name) {
                        queue.reader = reader.or(queue.reader.take());
                        queue.overview = Some(overview);
                    }
                }
                if let Some((name, next)) = next
                    && self.open.as_ref() == Some(&name)
                {
                    self.next = next;
                }
                self.failure = None;
            }
            Event::Failed(why) => self.failure = Some(why),
        }
        None
    }

    fn on_key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Action::Quit),
                KeyCode::Char('z') => Some(Action::Suspend),
                KeyCode::Char('l') => Some(Action::Redraw),
                _ => None,
            };
        }
        if self.is_typing {
            self.on_typed(key.code);
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char(' ' | 'p') => {
                self.is_paused = !self.is_paused;
                return (!self.is_paused).then_some(Action::Look);
            }
            KeyCode::Char('v') => self.has_values = !self.has_values,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if self.open.is_some() => {
                self.open = None;
                self.next = Next::default();
            }
            KeyCode::Esc => self.filter.clear(),
            _ if self.open.is_some() => {}
            KeyCode::Enter | KeyCode::Right => {
                let sorted = self.sorted();
                self.open = sorted.get(self.cursor(&sorted)).map(|name| (*name).clone());
                return self.open.is_some().then_some(Action::Look);
            }
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('s') => {
                let at = Sort::ALL.iter().position(|sort| *sort == self.sort).unwrap_or(0);
                self.sort = Sort::ALL[(at + 1) % Sort::ALL.len()];
                self.selected = None;
            }
            KeyCode::Char('r') => {
                self.is_reversed = !self.is_reversed;
                self.selected = None;
            }
            code => self.on_move(code),
        }
        None
    }

    fn on_typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(char) if !char.is_control() => self.filter.push(char),
            _ => {}
        }
    }

    fn on_move(&mut self, code: KeyCode) {
        let page = self.page();
        let sorted = self.sorted();
        let at = self.cursor(&sorted);
        let to = match code {
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::PageDown => at + page,
            KeyCode::PageUp => at.saturating_sub(page),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => usize::MAX,
            _ => return,
        };
        let to = to.min(sorted.len().saturating_sub(1));
        let selected = sorted.get(to).map(|name| (*name).clone());
        let top = self.top.min(to).max((to + 1).saturating_sub(page));
        (self.selected, self.top) = (selected, top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(names: impl IntoIterator<Item = String>) -> State {
        let mut state = State::new("server".into(), Duration::from_secs(2), 0, (80, 24));
        state.on(Event::Found(names.into_iter().map(Bytes::from).collect()));
        state.on(Event::Searched { calls: 1, refusal: None, is_complete: true });
        state
    }

    fn queue(name: &str, change: impl FnOnce(&mut Overview)) -> (Overview, Option<Reader>) {
        let mut queue = Overview::default();
        queue.name = Bytes::copy_from_slice(name.as_bytes());
        change(&mut queue);
        (queue, None)
    }

    fn press(state: &mut State, keys: &str) -> Option<Action> {
        let mut action = None;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '↓' => KeyCode::Down,
                '⇟' => KeyCode::PageDown,
                '⇞' => KeyCode::PageUp,
                '←' => KeyCode::Backspace,
                key => KeyCode::Char(key),
            };
            action = state.on(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        }
        action
    }

    fn sorted(state: &State) -> Vec<&[u8]> {
        state.sorted().into_iter().map(|name| &name[..]).collect()
    }

    #[test]
    fn queues_are_sorted_by_what_is_asked_for() {
        let mut state = state(["a", "b", "c", "d"].map(String::from));
        let looked = vec![
            queue("a", |queue| (queue.pending, queue.ready) = (Some(7), Some(1))),
            queue("b", |queue| (queue.pending, queue.ready) = (Some(9), Some(2))),
            queue("c", |queue| {
                queue.overdue_for = Some(Duration::from_secs(60));
                queue.pending = Some(8);
            }),
        ];
        state.on(Event::Looked(looked, None, "server".into()));
        assert_eq!(sorted(&state), [b"c", b"a", b"b", b"d"], "the worst first, what is not known last");
        press(&mut state, "s");
        assert_eq!((state.sort, sorted(&state)), (Sort::Name, vec![&b"a"[..], b"b", b"c", b"d"]));
        press(&mut state, "s");
        assert_eq!(sorted(&state), [b"b", b"c", b"a", b"d"]);
        press(&mut state, "r");
        assert_eq!(sorted(&state), [b"a", b"c", b"b", b"d"]);
        for _ in 0..6 {
            press(&mut state, "s");
        }
        assert_eq!(state.sort, Sort::State);
    }

    #[test]
    fn a_filter_is_typed() {
        let mut state = state(["orders", "Mails", "x\x1b[2J"].map(String::from));
        press(&mut state, "/MAi");
        assert_eq!((sorted(&state), state.is_typing), (vec![&b"Mails"[..]], true));
        press(&mut state, "←←←q\n");
        assert_eq!((&*state.filter, state.is_typing, sorted(&state).len()), ("q", false, 0));
        press(&mut state, "\x1b/\\x1b");
        assert_eq!(sorted(&state), [b"x\x1b[2J"], "as it is shown");
        press(&mut state, "\x1b");
        assert_eq!((sorted(&state).len(), state.is_typing), (3, false));
        assert_eq!(press(&mut state, "q"), Some(Action::Quit));
    }

    #[test]
    fn the_cursor_stays_on_its_queue() {
        let mut state = state((0..50).map(|n| format!("queue-{n:02}")));
        let at_cursor = |state: &State| {
            let (names, at) = state.in_sight();
            String::from_utf8_lossy(names[at.unwrap()]).into_owned()
        };
        assert_eq!(at_cursor(&state), "queue-00");
        press(&mut state, "↓jjk");
        assert_eq!(at_cursor(&state), "queue-02");
        press(&mut state, "⇟⇟");
        assert_eq!((at_cursor(&state), state.in_sight().0.len()), ("queue-42".into(), 20));
        press(&mut state, "⇟");
        assert_eq!(at_cursor(&state), "queue-49");
        press(&mut state, "⇞k");
        assert_eq!(at_cursor(&state), "queue-28");
        // It becomes the worst.
        state.on(Event::Looked(
            vec![queue("queue-28", |queue| queue.dead_letters = Some(1))],
            None,
            "server".into(),
        ));
        assert_eq!(at_cursor(&state), "queue-28");
        assert_eq!(press(&mut state, "\n"), Some(Action::Look));
        assert_eq!(state.open.as_deref(), Some(&b"queue-28"[..]));
        state.on(Event::Searched { calls: 1, refusal: None, is_complete: true });
        assert_eq!(state.queues.len(), 1, "what is open stays");
        press(&mut state, "\x1b");
        assert_eq!((state.open.clone(), at_cursor(&state)), (None, "queue-28".into()));
    }

    #[test]
    fn a_look_asks_about_what_is_in_sight_and_some_others() {
        let mut state = state((0..1_000).map(|n| format!("queue-{n:03}")));
        let answers = |names: &[Bytes]| {
            let answer = |name: &Bytes| queue(std::str::from_utf8(name).unwrap(), |_| ());
            Event::Looked(names.iter().map(answer).collect(), None, "server".into())
        };
        let first = state.asks();
        assert_eq!(first.len(), 1_000, "about each once at the beginning");
        state.on(answers(&first));
        let mut asked = BTreeSet::new();
        for _ in 0..10 {
            let asks = state.asks();
            assert!(asks.len() <= 120, "{}", asks.len());
            assert!(asks.iter().any(|name| name == "queue-000"), "it is in sight");
            asked.extend(asks);
        }
        assert_eq!(asked.len(), 1_000);
        assert_eq!(state.unread().len(), 20);
        press(&mut state, "\n");
        assert_eq!(state.unread().len(), 1);
        assert!(state.asks().len() <= 101);
    }

    #[test]
    fn what_is_gone_is_shown_no_more() {
        let mut state = state(["a", "b"].map(String::from));
        state.on(Event::Found(vec!["b".into()]));
        assert_eq!(sorted(&state), [b"a", b"b"], "the search goes on");
        state.on(Event::Searched { calls: 1, refusal: None, is_complete: true });
        assert_eq!(sorted(&state), [b"b"]);
        state.on(Event::Looked(vec![queue("a", |_| ())], None, "other".into()));
        assert_eq!(sorted(&state), [b"b"], "an answer comes late");
    }

    #[test]
    fn other_keys() {
        let mut state = state(["a".into()]);
        let control = |key| Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
        assert_eq!(state.on(control('c')), Some(Action::Quit));
        assert_eq!(state.on(control('z')), Some(Action::Suspend));
        assert_eq!(state.on(control('l')), Some(Action::Redraw));
        assert_eq!((press(&mut state, " "), state.is_paused), (None, true));
        assert_eq!((press(&mut state, "p"), state.is_paused), (Some(Action::Look), false));
        press(&mut state, "/");
        assert_eq!(state.on(control('c')), Some(Action::Quit), "also while something is typed");
    }
}
