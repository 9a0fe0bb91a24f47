//! Which panes there are at a size of the terminal, and where. Pure.

use ratatui::layout::Rect;

/// Below this width, panes stand on top of each other.
const WIDE: u16 = 70;
/// A box of numbers or lateness: six rows and a border.
const BOX: u16 = 8;
/// A list of orders: a border, and at least three rows.
const LIST: u16 = 5;

/// Areas of the picture; an empty one is not drawn.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Panes {
    pub(crate) promise: Rect,
    pub(crate) pending: Rect,
    pub(crate) taken: Rect,
    /// One line each, or boxes.
    pub(crate) lateness: Rect,
    pub(crate) numbers: Rect,
    /// One line, or one for each key.
    pub(crate) keys: Rect,
    pub(crate) note: Rect,
    pub(crate) help: Rect,
}

impl Panes {
    /// Gives out the lines by importance, the rest of them to the orders.
    pub(crate) fn new(area: Rect) -> Self {
        let wide = area.width >= WIDE;
        let mut left = area.height;
        let mut take = |wanted: u16, from: u16| {
            let given = if area.height >= from { wanted.min(left) } else { 0 };
            left -= given;
            given
        };
        let promise = take(1, 0);
        let help = take(1, 6);
        let note = take(1, 9);
        let boxes = if wide { take(BOX, 20) } else { 0 };
        let lines = boxes == 0;
        let numbers = if lines { take(1, 3) } else { 0 };
        let lateness = if lines { take(1, 5) } else { 0 };
        let keys = if wide && area.height >= 23 { take(3, 23) } else { take(1, 17) };
        let lists = left;

        let mut top = area.y;
        let [promise, lists, boxes, numbers, lateness, keys, note, help] =
            [promise, lists, boxes, numbers, lateness, keys, note, help].map(|height| {
                let row = Rect { y: top, height, ..area };
                top += height;
                row
            });
        let [pending, taken] = if wide {
            side_by_side(lists)
        } else if lists.height >= 2 * LIST {
            let upper = lists.height / 2;
            let lower = Rect { y: lists.y + upper, height: lists.height - upper, ..lists };
            [Rect { height: upper, ..lists }, lower]
        } else {
            [Rect::default(), lists]
        };
        let [lateness, numbers] = if lines { [lateness, numbers] } else { side_by_side(boxes) };
        Self { promise, pending, taken, lateness, numbers, keys, note, help }
    }
}

fn side_by_side(area: Rect) -> [Rect; 2] {
    let left = area.width / 2;
    [Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panes(width: u16, height: u16) -> Panes {
        Panes::new(Rect::new(0, 0, width, height))
    }

    fn all(panes: &Panes) -> [Rect; 8] {
        let Panes { promise, pending, taken, lateness, numbers, keys, note, help } = panes;
        [*promise, *pending, *taken, *lateness, *numbers, *keys, *note, *help]
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
    fn a_usual_terminal_has_everything() {
        for (width, height) in [(80, 24), (120, 40)] {
            let panes = panes(width, height);
            assert!(all(&panes).iter().all(|pane| !pane.is_empty()));
            assert_eq!((panes.keys.height, panes.lateness.height), (3, BOX));
            assert_eq!(panes.pending.y, panes.taken.y);
            assert!(panes.pending.height >= 10);
        }
    }

    #[test]
    fn a_narrow_one_has_lines_for_boxes() {
        let panes = panes(46, 20);
        assert!(all(&panes).iter().all(|pane| !pane.is_empty()));
        assert_eq!((panes.lateness.height, panes.numbers.height, panes.keys.height), (1, 1, 1));
        assert!(panes.pending.bottom() <= panes.taken.y);
    }

    #[test]
    fn a_small_one_keeps_what_matters() {
        let panes = panes(46, 8);
        assert!(panes.pending.is_empty() && panes.keys.is_empty() && panes.note.is_empty());
        assert_eq!((panes.taken.height, panes.help.height), (4, 1));
        assert_eq!(super::Panes::new(Rect::new(0, 0, 20, 2)).taken.height, 1);
    }
}
