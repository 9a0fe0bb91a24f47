//! Names of Java as names of Rust, and what serde makes of them again.

/// Words that no name of Rust can be; all but the last four can be after `r#`.
const WORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
    "Self", "crate", "self", "super",
];

/// A name of Java with underscores, and whether `rename_all = "camelCase"` is needed for it.
pub(super) struct Snake {
    name: String,
    pub(super) is_renamed: bool,
}

/// `orderNo` is `order_no`, `aURL` is `a_url`.
pub(super) fn snake_name(java: &str) -> Snake {
    let letters: Vec<char> = java.chars().collect();
    let mut name = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let is_after_small = at > 0 && !letters[at - 1].is_uppercase() && letters[at - 1] != '_';
        let is_before_small = at > 0 && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase()
            && letters.get(at.wrapping_sub(1)) != Some(&'_')
            && (is_after_small || is_before_small)
        {
            name.push('_');
        }
        match letter {
            '$' | '-' => name.push('_'),
            letter => name.extend(letter.to_lowercase()),
        }
    }
    let is_renamed = name != java && camel(&name) == java;
    Snake { name, is_renamed }
}

/// What serde's `camelCase` makes of the name of a field.
fn camel(name: &str) -> String {
    let mut pascal = String::new();
    let mut is_first = true;
    for letter in name.chars() {
        match letter {
            '_' => is_first = true,
            letter if is_first => {
                pascal.push(letter.to_ascii_uppercase());
                is_first = false;
            }
            letter => pascal.push(letter),
        }
    }
    let mut letters = pascal.chars();
    letters.next().map(|first| first.to_ascii_lowercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// The name, with a number if it is taken.
pub(super) fn distinct(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    match is_taken(&name) {
        false => name,
        true => {
            let numbered = |number: usize| Some(format!("{name}{number}")).filter(|name| !is_taken(name));
            (2..).find_map(numbered).unwrap_or(name)
        }
    }
}

/// The name of a field, and its serde name if that is not what follows from it.
pub(super) fn field(java: &str, has_rule: bool) -> (String, Option<&str>) {
    let name = snake_name(java).name;
    let serde = if has_rule { camel(&name) } else { name.clone() };
    let rename = (serde != java).then_some(java);
    let can_be_raw = !matches!(&*name, "crate" | "self" | "super" | "Self" | "_");
    match WORDS.contains(&&*name) || name == "_" {
        false if name.starts_with(|first: char| first.is_alphabetic() || first == '_') => (name, rename),
        true if can_be_raw => (format!("r#{name}"), rename),
        _ => (format!("{name}_"), Some(java)),
    }
}

/// Types and traits that the printed text uses.
const IN_RUST: [&str; 9] =
    ["String", "Vec", "Option", "Box", "HashMap", "BTreeMap", "Self", "Serialize", "Deserialize"];

/// The name of a class without its package and the classes around it.
pub(super) fn type_name(class: &str) -> String {
    let simple = class.split('<').next().unwrap_or(class);
    let simple = simple.rsplit(['.', '$']).next().unwrap_or(simple);
    let name: String = simple.chars().filter(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    let mut letters = name.chars();
    let name = letters.next().map(|first| first.to_uppercase().to_string() + letters.as_str());
    match name.unwrap_or_default() {
        // As they are in Rust.
        name if IN_RUST.contains(&&*name) => format!("Java{name}"),
        name if name.starts_with(|first: char| first.is_alphabetic()) => name,
        name => format!("Class{name}"),
    }
}

/// `IN_FLIGHT` is `InFlight`.
pub(super) fn variant(constant: &str) -> String {
    let mut name = String::new();
    let is_upper = !constant.chars().any(char::is_lowercase);
    for part in constant.split(['_', '$']) {
        let mut letters = part.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        match is_upper {
            true => name.push_str(&letters.as_str().to_lowercase()),
            false => name.push_str(letters.as_str()),
        }
    }
    match name.starts_with(|first: char| first.is_alphabetic()) && name != "Self" {
        true => name,
        false => format!("C{name}"),
    }
}

/// The rule by which serde makes all constants of their variants.
pub(super) fn rule(constants: &[String]) -> Option<&'static str> {
    let screaming = |variant: &str| {
        let mut name = String::new();
        for (at, letter) in variant.char_indices() {
            if at > 0 && letter.is_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        name
    };
    let all = |rule: &dyn Fn(&str) -> String| {
        constants.iter().all(|constant| rule(&variant(constant)) == *constant)
    };
    if constants.is_empty() || all(&str::to_owned) {
        None
    } else if all(&|variant| variant.to_ascii_uppercase()) {
        Some("UPPERCASE")
    } else if all(&screaming) {
        Some("SCREAMING_SNAKE_CASE")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (java, rust, is_renamed, rename) in [
            ("orderNo", "order_no", true, None),
            ("aURL", "a_url", false, Some("aURL")),
            ("id", "id", false, None),
            ("type", "r#type", false, None),
            ("self", "self_", false, Some("self")),
            ("snake_case", "snake_case", false, Some("snake_case")),
            ("x1Y", "x1_y", true, None),
            ("ID", "id", false, Some("ID")),
            ("$jacoco", "_jacoco", false, Some("$jacoco")),
        ] {
            assert_eq!(snake_name(java).is_renamed, is_renamed, "{java}");
            assert_eq!(field(java, true), (rust.to_owned(), rename), "{java}");
        }
        assert_eq!(variant("IN_FLIGHT"), "InFlight");
        assert_eq!(rule(&["IN_FLIGHT".into(), "A".into()]), Some("SCREAMING_SNAKE_CASE"));
        assert_eq!(rule(&["NEW".into(), "PAID".into()]), Some("UPPERCASE"));
        assert_eq!((rule(&["New".into()]), rule(&["V1_2".into(), "x".into()])), (None, None));
        assert_eq!(type_name("com.acme.Zoo$Order"), "Order");
        assert_eq!(type_name("com.acme.Shapes$1"), "Class1");
    }
}
