//! Lists that change between any two pages.

use super::*;

/// What a caller collects that wants all of them.
#[derive(Default)]
struct AllEntries {
    entries: Entries,
    read: Vec<Bytes>,
    front: Vec<Bytes>,
}

impl AllEntries {
    fn into_elements(mut self) -> Vec<Bytes> {
        self.front.append(&mut self.read);
        self.front
    }
}

impl Reading for AllEntries {
    fn next(&self) -> Option<Ask> {
        self.entries.next()
    }

    fn add(&mut self, ask: Ask, page: Page) {
        let into = if self.entries.stage == Stage::Front { &mut self.front } else { &mut self.read };
        self.entries.add(ask, page);
        into.append(&mut self.entries.page);
        assert!(self.entries.last.len() <= KNOWN);
    }
}

fn element(number: u32) -> Bytes {
    number.to_string().into()
}

/// What the script does with a list, the limit of its bytes left out.
fn page(list: &[Bytes], ask: Ask) -> Page {
    let most = PAGE + ask.known;
    let elements: Vec<_> = if ask.towards_head {
        list[..list.len().min(ask.at.saturating_add(1))].iter().rev().take(most).cloned().collect()
    } else {
        list.iter().skip(ask.at).take(most).cloned().collect()
    };
    Page { length: list.len(), elements }
}

/// Reads all of a list that changes before each page but the first. Returns the number of pages.
fn read(list: &mut Vec<Bytes>, reading: &mut impl Reading, mut change: impl FnMut(&mut Vec<Bytes>)) -> usize {
    let mut pages = 0;
    while let Some(ask) = reading.next() {
        if pages > 0 {
            change(list);
        }
        pages += 1;
        assert!(pages < 10_000, "it does not end");
        reading.add(ask, page(list, ask));
    }
    pages
}

/// Those of the first list that are also in the last one.
fn stayed(before: &[Bytes], after: &[Bytes]) -> Vec<Bytes> {
    let after: HashSet<_> = after.iter().collect();
    before.iter().filter(|element| after.contains(element)).cloned().collect()
}

#[test]
fn a_list_at_rest_is_read_as_it_is() {
    for length in [0, 1, 3, 999, 1000, 1001, 1016, 5000] {
        for equal in [false, true] {
            let mut list: Vec<_> = (0..length).map(|n| element(if equal { 7 } else { n })).collect();
            let mut payloads = Payloads::new(usize::MAX);
            let pages = read(&mut list, &mut payloads, |_| {});
            assert_eq!(pages == 1, length <= 1000, "{length}");
            assert_eq!(payloads.into_elements(), list, "{length}");
            if !equal || length <= 1000 {
                let mut entries = AllEntries::default();
                let pages = read(&mut list, &mut entries, |_| {});
                assert_eq!(pages == 1, length <= 1000, "{length}");
                assert_eq!(entries.into_elements(), list, "{length}");
            }
        }
    }
    let mut list: Vec<_> = (0..5000).map(element).collect();
    for most in [0, 1, 1000, 3000, 9000] {
        let mut payloads = Payloads::new(most);
        read(&mut list, &mut payloads, |_| {});
        assert_eq!(payloads.into_elements(), list[..most.min(5000)], "{most}");
    }
}

/// Taken from both ends, removed anywhere, put at both ends.
#[test]
fn payloads_that_stay_are_returned_once_and_in_order() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut list: Vec<_> = (0..random.u32(1001..8000)).map(element).collect();
        let (before, mut next) = (list.clone(), 1_000_000);
        let most = [0, 5, 30, 3000][random.usize(..4)];
        let mut payloads = Payloads::new(usize::MAX);
        read(&mut list, &mut payloads, |list| {
            list.drain(..random.usize(..=most).min(list.len()));
            list.truncate(list.len() - random.usize(..=most / 10).min(list.len()));
            for _ in 0..random.usize(..=most / 10) {
                if !list.is_empty() {
                    list.remove(random.usize(..list.len()));
                }
            }
            let mut new = |count: usize| {
                next += count as u32;
                (next - count as u32..next).map(element).collect::<Vec<_>>()
            };
            list.extend(new(random.usize(..=most)));
            if seed % 2 == 0 {
                list.splice(..0, new(random.usize(..=most / 6)));
            }
        });
        let (stayed, read) = (stayed(&before, &list), payloads.into_elements());
        let those: HashSet<_> = stayed.iter().collect();
        let of_those = read.iter().filter(|element| those.contains(element));
        assert!(of_those.eq(&stayed), "seed {seed}: {} of {}", read.len(), stayed.len());
    }
}

/// All that was read leaves, or so much of it that what is left looks like something else.
#[test]
fn payloads_that_stay_are_returned_whatever_leaves_the_tail() {
    for seed in 0..120 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut list: Vec<_> = (0..random.u32(1001..30_000)).map(element).collect();
        let (before, mut next) = (list.clone(), 1_000_000);
        let taken = [0, 5, 300][random.usize(..3)];
        let mut payloads = Payloads::new(usize::MAX);
        read(&mut list, &mut payloads, |list| {
            list.drain(..random.usize(..=taken).min(list.len()));
            let most = list.len();
            if seed % 2 == 0 {
                list.truncate(most - random.usize(..=3 * PAGE).min(most));
            } else {
                // As `remove_all` and `retain_all` do.
                let every = random.usize(1..9);
                let tail = list.split_off(most.saturating_sub(random.usize(..10_000)));
                let is_left = |n: usize| if seed % 4 == 1 { n % 9 >= every } else { n % 9 == every };
                list.extend(tail.into_iter().enumerate().filter(|(n, _)| is_left(*n)).map(|(_, left)| left));
            }
            list.extend((0..random.u32(..30)).map(|n| element(next + n)));
            next += 30;
        });
        let (stayed, read) = (stayed(&before, &list), payloads.into_elements());
        let those: HashSet<_> = stayed.iter().collect();
        let of_those: Vec<_> = read.iter().filter(|element| those.contains(element)).collect();
        assert!(of_those.iter().copied().eq(&stayed), "seed {seed}: {} of {}", of_those.len(), stayed.len());
    }
}

#[test]
fn a_list_that_becomes_shorter_faster_than_it_is_read_is_read() {
    let mut list: Vec<_> = (0..300_000).map(element).collect();
    let mut payloads = Payloads::new(usize::MAX);
    let pages = read(&mut list, &mut payloads, |list| {
        if list.len() > 200_000 {
            list.truncate(list.len() - 1000);
        }
    });
    let read = payloads.into_elements();
    assert!(read.ends_with(&list) || read.starts_with(&list), "{} of {}", read.len(), list.len());
    assert!(pages < 700, "{pages}");
}

/// Not less often than they are there, and more often only by those that have left the list.
#[test]
fn equal_payloads_that_stay_are_returned() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let kinds = random.u32(1..4);
        let mut list: Vec<_> = (0..random.u32(1001..8000)).map(|_| element(random.u32(..kinds))).collect();
        let count = |list: &[Bytes], kind| list.iter().filter(|other| **other == element(kind)).count();
        let (before, mut left) = (list.clone(), Vec::new());
        let mut payloads = Payloads::new(usize::MAX);
        read(&mut list, &mut payloads, |list| {
            left.extend(list.drain(..random.usize(..30).min(list.len())));
            if !list.is_empty() {
                left.push(list.remove(random.usize(..list.len())));
            }
            list.extend((0..random.usize(..30)).map(|_| element(kinds + 1)));
        });
        let read = payloads.into_elements();
        for kind in 0..kinds {
            let (most, least) = (count(&before, kind), count(&before, kind) - count(&left, kind));
            let found = count(&read, kind);
            assert!((least..=most + left.len()).contains(&found), "seed {seed}: {least}, {found}, {most}");
        }
    }
}

/// Transfers take from the front, and bring what is overdue there; others offer, cancel, poll and give back.
#[test]
fn entries_that_stay_are_returned_once() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut list: Vec<_> = (0..random.u32(1001..12_000)).map(element).collect();
        let (before, mut next) = (list.clone(), 1_000_000);
        // A part of the list is overdue, or entries all over it are.
        let overdue: HashSet<Bytes> = match seed % 3 {
            0 => (0..12_000).filter(|_| random.bool()).map(element).collect(),
            1 => (random.u32(..6000)..random.u32(6000..12_000)).map(element).collect(),
            _ => HashSet::new(),
        };
        let most = [0, 5, 30, 2000][random.usize(..4)];
        let mut entries = AllEntries::default();
        read(&mut list, &mut entries, |list| {
            if random.u8(..4) == 0 {
                let (mut front, rest): (Vec<_>, Vec<_>) =
                    list.drain(..).partition(|entry| overdue.contains(entry));
                front.drain(..random.usize(..=most).min(front.len()));
                *list = front.into_iter().chain(rest).collect();
            }
            for _ in 0..random.usize(..=most / 10) {
                if !list.is_empty() {
                    list.remove(random.usize(..list.len()));
                }
            }
            let polled: Vec<_> = list.drain(..random.usize(..=most).min(list.len())).collect();
            if random.bool() {
                list.splice(..0, polled);
            }
            list.extend((0..random.u32(..=most as u32)).map(|n| element(next + n)));
            next += most as u32;
        });
        let (stayed, read) = (stayed(&before, &list), entries.into_elements());
        let unique: HashSet<_> = read.iter().collect();
        assert_eq!(unique.len(), read.len(), "seed {seed}: some come twice");
        let moves = |entry: &&Bytes| overdue.contains(*entry);
        let missing: Vec<_> =
            stayed.iter().filter(|entry| !unique.contains(entry) && !moves(entry)).collect();
        assert!(missing.is_empty(), "seed {seed}: {} of {}", missing.len(), stayed.len());
        let those: HashSet<_> = stayed.iter().collect();
        let in_order = read.iter().filter(|entry| those.contains(entry) && !moves(entry));
        assert!(in_order.eq(stayed.iter().filter(|entry| !moves(entry))), "seed {seed}: the order");
    }
}
