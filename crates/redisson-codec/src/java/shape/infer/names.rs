//! What the serde name of a type says, compared with the type.

use super::super::{Form, Named};
use crate::java::known_classes::{Class, ClassKind, Layout, known};
use crate::java::probe::Requested;
use crate::java::type_hint::TypeHint;

/// The class of a map or list of an application, which is the serde name of a newtype around it.
pub(super) fn own_class(name: &'static str, requested: Requested) -> Result<Option<TypeHint>, String> {
    let kind = match requested {
        Requested::Map => ClassKind::Map(Layout::Plain),
        Requested::Seq => ClassKind::Collection(Layout::Plain),
        _ => return Ok(None),
    };
    // It would be written as a part of the class.
    if let Some((words, class)) = name.rsplit_once(' ') {
        return Err(format!("no `{words}` goes in front of `{class}`, which is the class of a list or map"));
    }
    // As long as the shape of the type, which is never freed either.
    let own = || &*Box::leak(Box::new(Class { name, kind, is_final: false }));
    Ok(Some(TypeHint::Class(known(name).unwrap_or_else(own))))
}

/// Which field this is.
pub(super) fn place(word: &str, name: &str, fields: &[&str]) -> Result<usize, String> {
    let at = fields.iter().position(|field| *field == name);
    at.ok_or_else(|| format!("`{word}(…)` names `{name}`, which is no field"))
}

/// Of each constant, the class of its body, which is that of all its names.
pub(super) fn bodies(
    named: &Named<'_>,
    variants: &[&str],
    firsts: &[usize],
) -> Result<Vec<Option<String>>, String> {
    let list: Option<Vec<&str>> = named.bodies.map(|list| list.split(',').map(str::trim).collect());
    if let Some(other) = list.iter().flatten().find(|name| !variants.contains(name)) {
        return Err(format!("`abstract(…)` names `{other}`, which is no constant of the enum"));
    }
    let is_named = |name| match &list {
        Some(list) => list.contains(name),
        None => named.form == Form::Abstract,
    };
    let has_body = |constant| variants.iter().zip(firsts).any(|(name, at)| *at == constant && is_named(name));
    let with_body: Vec<_> = (0..variants.len()).filter(|at| firsts[*at] == *at && has_body(*at)).collect();
    let body = |first: &usize| {
        let before = with_body.iter().position(|at| at == first)?;
        Some(format!("{}${}", named.class, before + 1))
    };
    Ok(firsts.iter().map(body).collect())
}
