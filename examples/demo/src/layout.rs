//! Which panes there are at a size of the terminal, and where. Pure.

use ratatui::layout::Rect;

/// From this width on, panes stand side by side; from the other one on, in three columns.
const TWO: u16 = 70;
const THREE: u16 = 110;
/// A box of numbers or lateness: six rows and a border.
const BOX: u16 = 8;
/// From this height on there are boxes instead of lines.
const TALL: u16 = 32;
/// A list of one order with its border.
const LIST: u16 = 3;

/// Areas of the picture; an empty one is not drawn.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Panes {
    pub(crate) promise: Rect,
    pub(crate) what: Rect,
    /// All lists together.
    pub(crate) lists: Rect,
    pub(crate) pending: Rect,
    pub(crate) in_flight: Rect,
    pub(crate) waiting: Rect,
    pub(crate) dead: Rect,
    pub(crate) done: Rect,
    /// One line each, or boxes.
    pub(crate) lateness: Rect,
    pub(crate) numbers: Rect,
    pub(crate) keys: Rect,
    pub(crate) note: Rect,
    pub(crate) help: Rect,
}

impl Panes {
    /// Gives out the lines by importance, the rest of them to the orders.
    pub(crate) fn new(area: Rect) -> Self {
        let boxed = area.width >= TWO && area.height >= TALL;
        let mut left = area.height;
        let mut take = |wanted: u16, from: u16| {
            let given = if area.height >= from { wanted.min(left) } else { 0 };
            left -= given;
            given
        };
        let heights = [
            take(1, 0),
            take(1, 10),
            if boxed { take(BOX, 0) } else { take(1, 6) },
            if boxed { 0 } else { take(1, 12) },
            if boxed { take(3, 0) } else { 0 },
            take(1, 8),
            take(1, 4),
        ];
        let [promise, what, numbers, lateness, keys, note, help] = heights;
        let mut top = area.y;
        let [promise, what, lists, numbers, lateness, keys, note, help] =
            [promise, what, left, numbers, lateness, keys, note, help].map(|height| {
                let row = Rect { y: top, height, ..area };
                top += height;
                row
            });
        let [lateness, numbers] = if boxed { columns(numbers) } else { [lateness, numbers] };
        let mut panes = Self { promise, what, lists, lateness, numbers, keys, note, help, ..Self::default() };
        panes.place_lists();
        panes
    }

    fn place_lists(&mut self) {
        let area = self.lists;
        if area.width >= THREE && area.height >= 2 * LIST {
            let [left, middle, right] = columns(area);
            self.pending = left;
            [self.in_flight, self.waiting] = rows(middle, [3, 2]);
            [self.done, self.dead] = rows(right, [3, 2]);
        } else if area.width >= TWO && area.height >= 2 * LIST {
            let [left, right] = columns(area);
            [self.pending, self.waiting] = rows(left, [3, 2]);
            [self.in_flight, self.dead] = rows(right, [3, 2]);
        } else if area.height >= 4 * LIST {
            [self.pending, self.in_flight, self.waiting, self.dead] = rows(area, [3, 3, 2, 2]);
        } else {
            self.in_flight = area;
        }
    }
}

fn columns<const N: usize>(area: Rect) -> [Rect; N] {
    let [mut x, mut left] = [area.x, area.width];
    let mut rest = N as u16;
    [(); N].map(|()| {
        let width = left / rest;
        let column = Rect { x, width, ..area };
        (x, left, rest) = (x + width, left - width, rest - 1);
        column
    })
}

/// In these proportions.
fn rows<const N: usize>(area: Rect, weights: [u16; N]) -> [Rect; N] {
    let [mut y, mut left] = [area.y, area.height];
    let mut rest: u16 = weights.iter().sum();
    weights.map(|weight| {
        let height = (left * weight + rest / 2) / rest;
        let row = Rect { y, height, ..area };
        (y, left, rest) = (y + height, left - height, rest - weight);
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panes(width: u16, height: u16) -> Panes {
        Panes::new(Rect::new(0, 0, width, height))
    }

    fn lists(panes: &Panes) -> [Rect; 4] {
        [panes.pending, panes.in_flight, panes.waiting, panes.dead]
    }

    fn all(panes: &Panes) -> [Rect; 12] {
        let [pending, in_flight, waiting, dead] = lists(panes);
        let Panes { promise, what, done, lateness, numbers, keys, note, help, .. } = panes;
        [*promise, *what, *done, *lateness, *numbers, *keys, *note, *help, pending, in_flight, waiting, dead]
    }

    #[test]
    fn at_every_size_the_panes_are_inside_and_apart() {
        for width in 0..130 {
            for height in 0..50 {
                let area = Rect::new(0, 0, width, height);
                let all = all(&Panes::new(area));
                for (n, pane) in all.iter().enumerate().filter(|(_, pane)| !pane.is_empty()) {
                    assert_eq!(pane.intersection(area), *pane, "{width}x{height}");
                    for other in &all[n + 1..] {
                        assert!(pane.intersection(*other).is_empty(), "{width}x{height}");
                    }
                }
                assert_eq!(all[0].height, height.min(1), "the promise is always there");
            }
        }
    }

    #[test]
    fn every_usual_terminal_has_the_four_lists_and_the_keys() {
        for (width, height, rows) in [(120, 40, 8), (80, 24, 5), (46, 24, 1)] {
            let panes = panes(width, height);
            for list in lists(&panes) {
                assert!(list.height >= 2 + rows, "{width}x{height}: {list:?}");
            }
            for line in [panes.what, panes.note, panes.help, panes.numbers, panes.lateness] {
                assert!(!line.is_empty(), "{width}x{height}");
            }
        }
        assert_eq!((panes(120, 40).lateness.height, panes(120, 40).keys.height), (BOX, 3));
        assert!(!panes(120, 40).done.is_empty());
        assert_eq!((panes(80, 24).lateness.height, panes(80, 24).keys.height), (1, 0));
    }

    #[test]
    fn a_small_one_keeps_what_matters() {
        let panes = panes(46, 8);
        assert!(panes.pending.is_empty() && panes.keys.is_empty() && panes.what.is_empty());
        assert_eq!((panes.in_flight.height, panes.help.height), (4, 1));
        assert_eq!(super::Panes::new(Rect::new(0, 0, 20, 2)).in_flight.height, 1);
    }
}
