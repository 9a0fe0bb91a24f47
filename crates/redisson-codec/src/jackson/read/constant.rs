//! Constants of enums, of which the class in front shows which have bodies.

use super::ValueReader;
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::mapper::Typing;
use crate::jackson::node::Is;
use crate::java::shape::{EnumShape, Form};

impl ValueReader<'_, '_> {
    /// Refuses a constant that would be written with a class where the payload has none, or the other way
    /// round: then the word for the enum is another one than Java has.
    ///
    /// An enum of which constants have bodies can be of several classes, so that Jackson writes the class in
    /// front. Where the constant is the payload itself, its own class decides.
    pub(super) fn check_bodies(&self, constants: &EnumShape, name: &str) -> Outcome<()> {
        if self.context.any_class || self.context.mapper.typing == Typing::Nowhere || self.in_enum_set {
            return Ok(());
        }
        let has_class = !matches!(self.node.is, Is::Text(_));
        let is_right = match constants.form {
            Form::Abstract if self.root => {
                let constant = constants.variants.iter().position(|variant| *variant == name);
                constant.is_none_or(|constant| constants.bodies[constant].is_none() == has_class)
            }
            Form::Abstract => has_class,
            _ => self.open || !has_class,
        };
        if is_right { Ok(()) } else { Err(self.wrong_bodies(constants, has_class)) }
    }

    #[cold]
    fn wrong_bodies(&self, constants: &EnumShape, has_class: bool) -> Failure {
        let why = match (has_class, constants.form) {
            (true, Form::Abstract) => "has its class in front, so it has no body",
            (true, _) => "has its class in front, so some of them have bodies",
            (false, _) if self.root => "has no class in front, so it has a body",
            (false, _) => "has no class in front, so none of them has a body",
        };
        let class = &constants.class;
        let why = format!("a constant of `{class}` {why}: `abstract(…)` names those that have one");
        Failure::new(why).at(self.node.at)
    }
}
