//! Colours and their meaning. Without colour (`NO_COLOR`) the picture is the same.

use ratatui::style::{Color, Modifier, Style};

use crate::order::Side;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    coloured: bool,
}

impl Theme {
    /// <https://no-color.org>
    pub(crate) fn from_env() -> Self {
        Self { coloured: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    #[cfg(test)]
    pub(crate) fn coloured() -> Self {
        Self { coloured: true }
    }

    fn colour(self, colour: Color) -> Style {
        if self.coloured { Style::new().fg(colour) } else { Style::new() }
    }

    pub(crate) fn bold(self) -> Style {
        // On a border, which is dim.
        Style::new().add_modifier(Modifier::BOLD).remove_modifier(Modifier::DIM)
    }

    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(crate) fn warning(self) -> Style {
        self.colour(Color::Yellow)
    }

    /// It is visible without colour, too.
    pub(crate) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    pub(crate) fn bad_bar(self) -> Style {
        self.colour(Color::Red)
    }

    pub(crate) fn bar(self) -> Style {
        self.colour(Color::Cyan)
    }

    pub(crate) fn side(self, side: Side) -> Style {
        match side {
            Side::Rust => self.colour(Color::Cyan),
            Side::Java => self.colour(Color::Magenta),
        }
    }

    /// By lateness in milliseconds.
    pub(crate) fn late(self, millis: f64) -> Style {
        match millis {
            ..10.0 => self.good(),
            ..100.0 => self.warning(),
            _ => self.bad_bar(),
        }
    }
}
