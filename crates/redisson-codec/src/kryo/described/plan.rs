//! The plans of described classes: how their objects are written. Each is made when a payload first has the
//! class, so that a value looks nothing else up.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::Generic;
use crate::classes::{ClassKind, Classes, Hierarchy, Layout};
use crate::java::known_classes::Layout as LibraryLayout;

/// In bytes: more is not kept, but made again. Files of classes may be anybody's.
const MAX_KEPT: usize = 64 << 20;

/// Descriptions, and the plans that were made of them so far.
pub(in crate::kryo) struct Plans {
    pub(super) classes: Arc<Classes>,
    kept: RwLock<Kept>,
}

#[derive(Default)]
struct Kept {
    by_class: HashMap<String, Arc<Plan>>,
    /// How many bytes they take, about.
    memory: usize,
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.classes.fmt(f)
    }
}

/// How the objects of a class are written.
pub(super) enum Plan {
    Object(ObjectPlan),
    /// The names of its constants.
    Enum(Vec<String>),
    Collection(LibraryLayout),
    Map(LibraryLayout),
}

pub(super) struct ObjectPlan {
    /// In Kryo's order.
    pub(super) fields: Vec<FieldPlan>,
    /// How many type parameters the class itself has.
    pub(super) own_parameters: usize,
    /// Those of the class and of the classes above it, each with those that it is passed to: the class that
    /// declares it, and its name.
    pub(super) parameters: Vec<Vec<(String, String)>>,
}

pub(super) struct FieldPlan {
    pub(super) name: String,
    pub(super) kind: Generic,
    /// Kryo keeps the type arguments of the fields of classes, but not of those of records.
    keeps_arguments: bool,
}

impl FieldPlan {
    pub(super) fn arguments(&self) -> &[Generic] {
        if self.keeps_arguments { self.kind.arguments() } else { &[] }
    }
}

impl Plans {
    pub(in crate::kryo) fn new(classes: Arc<Classes>) -> Self {
        Self { classes, kept: RwLock::default() }
    }

    /// The plan of a class. `None` if it is not described.
    ///
    /// # Errors
    /// As [`Classes::layout`].
    pub(super) fn of(&self, class: &str) -> Result<Option<Arc<Plan>>, String> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner).by_class.get(class).cloned();
        if kept.is_some() { Ok(kept) } else { self.make(class) }
    }

    #[cold]
    fn make(&self, class: &str) -> Result<Option<Arc<Plan>>, String> {
        let Some(layout) = self.classes.layout(class)? else { return Ok(None) };
        let memory = match &layout {
            Layout::Object(hierarchy) => hierarchy.0.iter().map(|class| class.memory()).sum(),
            Layout::Enum(class) => class.memory(),
            Layout::Collection(_) | Layout::Map(_) => size_of::<Plan>() + class.len(),
        };
        let plan = Arc::new(Plan::new(&self.classes, layout));
        // The class of a constant with a body is not described itself, and a payload may have any number.
        if self.classes.get(class).is_some() {
            let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
            if kept.memory + memory <= MAX_KEPT
                && kept.by_class.insert(class.to_owned(), plan.clone()).is_none()
            {
                kept.memory += memory;
            }
        }
        Ok(Some(plan))
    }
}

impl Plan {
    fn new(classes: &Classes, layout: Layout<'_>) -> Self {
        match layout {
            Layout::Object(hierarchy) => Plan::Object(ObjectPlan::new(classes, &hierarchy)),
            Layout::Enum(class) => {
                Plan::Enum(class.constants.iter().map(|constant| constant.name.clone()).collect())
            }
            Layout::Collection(layout) => Plan::Collection(layout),
            Layout::Map(layout) => Plan::Map(layout),
        }
    }
}

impl ObjectPlan {
    fn new(classes: &Classes, hierarchy: &Hierarchy<'_>) -> Self {
        let is_record = hierarchy.0[0].kind == ClassKind::Record;
        let fields = hierarchy.fields().into_iter().map(|declared| FieldPlan {
            name: declared.field.name.clone(),
            kind: Generic::of(classes, hierarchy, declared.by, &declared.field.kind),
            keeps_arguments: !is_record,
        });
        let named = |(by, name): (usize, &str)| (hierarchy.0[by].name.clone(), name.to_owned());
        let parameters =
            hierarchy.parameters().into_iter().map(|chain| chain.into_iter().map(named).collect());
        Self {
            fields: fields.collect(),
            own_parameters: hierarchy.0[0].parameters.len(),
            parameters: parameters.collect(),
        }
    }
}
