//! Names of a projection's members that are found along Rust fields, once.

// DESIGN.md, 135: Projections find the names of Rust fields once

use std::sync::OnceLock;

use crate::resource::Segment;

/// Names of members.
pub type MemberNames = &'static [&'static str];

/// A generated walk along Rust fields.
type NameWalk = fn() -> Result<Vec<Segment>, String>;

/// Source of a member's name.
#[derive(Clone, Copy, Debug)]
pub enum MemberName {
    /// As written.
    Text(&'static str),
    /// The segment at this position of a path.
    Field(NameWalk, usize),
    /// The only segment of a path, or the usual name of a type that does not show its names.
    Own(NameWalk, &'static str),
}

/// The names of a node, found when they are first needed. They live as long as the program, as
/// literals do: each node of a type has a single list.
#[derive(Debug)]
pub struct FoundNames(OnceLock<Result<MemberNames, &'static str>>);

impl FoundNames {
    /// Names that were not needed yet.
    #[expect(clippy::new_without_default, reason = "it is the value of a static")]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the names.
    ///
    /// # Errors
    /// A type does not show the name of a field, or two members share a name.
    pub fn get(&self, members: &[MemberName]) -> Result<MemberNames, &'static str> {
        *self.0.get_or_init(|| match found(members) {
            Ok(names) => Ok(&*names.leak()),
            Err(why) => Err(&*format!("cannot read the projection: {why}").leak()),
        })
    }
}

fn found(members: &[MemberName]) -> Result<Vec<&'static str>, String> {
    let mut names = Vec::new();
    for member in members {
        let name = match *member {
            MemberName::Text(name) => name,
            MemberName::Field(walk, place) => segment(walk()?, place)?,
            MemberName::Own(walk, usual) => match walk() {
                Ok(segments) => segment(segments, 0)?,
                Err(_) => usual,
            },
        };
        if names.contains(&name) {
            return Err(format!("two fields read `{name}`: write both paths in the same form"));
        }
        names.push(name);
    }
    Ok(names)
}

/// The name at a position of a path.
fn segment(segments: Vec<Segment>, place: usize) -> Result<&'static str, String> {
    match segments.into_iter().nth(place) {
        Some(Segment::Field(name)) => Ok(&*name.leak()),
        // A flattened field makes the path shorter.
        _ => Err("a path through a flattened field has no place of its own".into()),
    }
}

/// Source of a path that a projection reads.
#[derive(Clone, Copy, Debug)]
pub enum ProjectedPath {
    /// As written.
    Text(MemberNames),
    /// A walk along Rust fields, and the names that they have in most types.
    Fields(NameWalk, MemberNames),
}

/// The paths that a projection reads, found when they are first needed.
#[derive(Debug)]
pub struct FoundPaths(OnceLock<&'static [MemberNames]>);

impl FoundPaths {
    /// Paths that were not needed yet.
    #[expect(clippy::new_without_default, reason = "it is the value of a static")]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the paths. A path that cannot be found is an error of each read, and has the usual
    /// names here.
    pub fn get(&self, paths: &[ProjectedPath]) -> &'static [MemberNames] {
        self.0.get_or_init(|| paths.iter().map(|path| path.names()).collect::<Vec<_>>().leak())
    }
}

impl ProjectedPath {
    fn names(self) -> MemberNames {
        let (walk, usual) = match self {
            Self::Text(names) => return names,
            Self::Fields(walk, usual) => (walk, usual),
        };
        let Ok(segments) = walk() else { return usual };
        let name = |segment: Segment| match segment {
            Segment::Field(name) => Some(&*name.leak()),
            _ => None,
        };
        segments.into_iter().filter_map(name).collect::<Vec<_>>().leak()
    }
}
