//! The rules: identifier, kind, reason and remedy of each sort of change.

use std::fmt;

use self::ChangeKind::{Breaking, Compatible, Ratcheted};

/// Consequence of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Stored objects or clients break: data is dropped, requests that were accepted are refused,
    /// or a served part is gone.
    Breaking,
    /// Requests that were accepted are refused; stored objects stay valid as long as their updates
    /// leave the invalid values unchanged. An API server before Kubernetes 1.33 may refuse each
    /// update of such an object.
    Ratcheted,
    /// Every stored object and every request that was accepted remains valid. Readers may meet
    /// values that they do not know.
    Compatible,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Breaking => "breaking",
            Self::Ratcheted => "ratcheted",
            Self::Compatible => "compatible",
        })
    }
}

/// Declares the rules as a table.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $id:literal $kind:ident $reason:literal $remedy:literal)*) => {
        /// A sort of change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::crd) enum CompatRule { $($(#[$doc])* $name),* }

        impl CompatRule {
            /// All rules, in the order of the table.
            #[cfg(test)]
            pub(super) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the identifier.
            pub(super) fn id(self) -> &'static str {
                match self { $(Self::$name => $id),* }
            }

            /// Returns the kind of such a change.
            pub(super) fn kind(self) -> ChangeKind {
                match self { $(Self::$name => $kind),* }
            }

            /// Returns the consequence in words.
            pub(super) fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason),* }
            }

            /// Returns the remedy in words; empty if none is needed.
            pub(super) fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy),* }
            }
        }
    };
}

rules! {
    /// Group, kind, plural, singular or list kind.
    NameChanged "name-changed" Breaking
        "requests and manifests under the old name fail, and an API server refuses a new kind or group in a stored definition"
        "keep the name, or install a second kind and move the objects to it"
    /// Namespaced or cluster-scoped.
    ScopeChanged "scope-changed" Breaking
        "an API server refuses another scope in a stored definition, and every URL changes"
        "keep the scope, or install a second kind and move the objects to it"
    /// A short name or category.
    AliasRemoved "alias-removed" Breaking
        "commands and scripts that use it fail"
        "keep it"
    AliasAdded "alias-added" Compatible "" ""
    /// Webhook to none.
    ConversionRemoved "conversion-removed" Breaking
        "objects of other versions are served with only `apiVersion` changed, and lose the fields that the schema of the requested version lacks"
        "keep the webhook until one version is left"
    ConversionChanged "conversion-changed" Compatible
        "every request in another version than the stored one depends on the webhook" ""
    /// `preserveUnknownFields` ends.
    PruningStarted "pruning-started" Breaking
        "the API server drops each field that no schema names from all objects"
        "describe the fields, or set `x-kubernetes-preserve-unknown-fields` in the schema"
    /// A served or stored version disappears.
    VersionRemoved "version-removed" Breaking
        "requests in this version fail, and an API server refuses the definition while objects are stored in it"
        "stop serving it a release earlier, write every object once more, and remove it from `status.storedVersions` before this change"
    VersionUnserved "version-unserved" Breaking
        "requests in this version fail with 404"
        "mark it as deprecated for some releases first"
    /// A version that was neither served nor stored.
    UnusedVersionRemoved "unused-version-removed" Compatible "" ""
    VersionAdded "version-added" Compatible "" ""
    VersionServed "version-served" Compatible "" ""
    VersionDeprecated "version-deprecated" Compatible
        "the API server answers with a warning" ""
    StorageVersionLossy "storage-version-lossy" Breaking
        "at its next write an object loses the fields that the schema of the new storage version lacks"
        "add the fields to that schema, or convert by a webhook"
    StorageVersionChanged "storage-version-changed" Compatible
        "objects stay stored in the old version until each is written once more"
        "keep the old version in the definition until all are"
    SubresourceRemoved "subresource-removed" Breaking
        "requests to it fail with 404"
        "keep it"
    /// The status becomes a subresource.
    StatusSeparated "status-separated" Breaking
        "writes of the object no longer change its status, without an error"
        "write the status by requests to `/status` before this change"
    ScaleAdded "scale-added" Compatible "" ""
    ScaleChanged "scale-changed" Breaking
        "autoscalers and `kubectl scale` read and write other fields"
        "keep the paths"
    SelectableFieldRemoved "selectable-field-removed" Breaking
        "lists and watches with this field selector fail with 400"
        "keep it"
    SelectableFieldAdded "selectable-field-added" Compatible "" ""
    ColumnsChanged "columns-changed" Compatible
        "only the output of `kubectl get` changes" ""
    FieldRemoved "field-removed" Breaking
        "the API server drops the field from every object that is read or written, without an error"
        "keep the field, and mark it as deprecated in its description"
    FieldAdded "field-added" Compatible "" ""
    /// A field that was kept without a schema.
    FieldDescribed "field-described" Ratcheted
        "other values of this name were accepted and are refused"
        "allow each value that objects may have"
    OpenFieldsRemoved "open-fields-removed" Breaking
        "the API server drops the fields from every object that is read or written, without an error"
        "keep them, or name each field that objects have"
    OpenFieldsAdded "open-fields-added" Compatible "" ""
    TypeChanged "type-changed" Breaking
        "values of the old type are refused, and clients cannot read the new one"
        "add a field of another name, and keep this one"
    TypeWidened "type-widened" Compatible
        "readers may meet values of the added type" ""
    RequiredAdded "required-added" Breaking
        "objects without the field are refused at each write that changes the object around it"
        "make it optional, or give it a default"
    RequiredWithDefault "required-with-default" Compatible
        "the default fills it in" ""
    RequiredRemoved "required-removed" Compatible
        "readers may meet objects without it" ""
    DefaultAdded "default-added" Breaking
        "stored objects without the field are read with the value, so absence can no longer be seen"
        "fill the value in where it is used"
    DefaultChanged "default-changed" Breaking
        "the same manifest gives another object than before"
        "keep the default, and change it in a new version"
    DefaultRemoved "default-removed" Breaking
        "readers meet objects without the field"
        "keep the default"
    NullableRemoved "nullable-removed" Ratcheted
        "the API server drops null from the field, and refuses an apply of null, and null in a list or map"
        "keep null allowed"
    /// As above, beside a default.
    NullDefaulted "null-defaulted" Breaking
        "objects with null in this field are read with the default"
        "keep null allowed"
    NullableAdded "nullable-added" Compatible
        "readers may meet null" ""
    EnumNarrowed "enum-narrowed" Ratcheted
        "objects with another value are refused"
        "keep the values, and treat them as the one that replaces them"
    EnumWidened "enum-widened" Compatible
        "readers may meet values that they do not know" ""
    BoundTightened "bound-tightened" Ratcheted
        "objects with a value beyond it are refused"
        "keep the bound, or check it where the value is used"
    BoundLoosened "bound-loosened" Compatible
        "readers may meet values beyond the old bound" ""
    PatternChanged "pattern-changed" Ratcheted
        "objects whose text does not match are refused; the comparison cannot see that a pattern matches more"
        "keep the pattern, or make sure that each old text matches"
    FormatChanged "format-changed" Ratcheted
        "objects whose value is not of this format are refused"
        "keep the format"
    CombinationChanged "combination-changed" Ratcheted
        "objects that no alternative allows are refused; the comparison cannot see that alternatives allow more"
        "keep the alternatives, or make sure that each old object is valid"
    ConstraintRemoved "constraint-removed" Compatible
        "readers may meet values that were refused" ""
    ListTypeChanged "list-type-changed" Breaking
        "server-side apply merges or replaces the list differently, and a set or map refuses repeated elements"
        "keep the list type, and its keys"
    MapTypeChanged "map-type-changed" Breaking
        "server-side apply merges or replaces the object differently: appliers remove each other's fields, or keep fields that they left out"
        "keep the map type"
    EmbeddedAdded "embedded-object-added" Breaking
        "values without `apiVersion`, `kind` and valid metadata are refused"
        "keep it a plain object"
    EmbeddedRemoved "embedded-object-removed" Compatible
        "the API server does not check its metadata" ""
    CelAdded "rule-added" Ratcheted
        "objects for which the rule is false are refused"
        "make sure that it is true for each old object, or let it depend on a new field"
    /// A rule with `oldSelf` is never ratcheted.
    TransitionRuleAdded "transition-rule-added" Breaking
        "updates that were allowed are refused, also of objects from before"
        "leave it out, or limit it by a condition on a new field"
    CelRemoved "rule-removed" Compatible
        "readers may meet objects that the rule refused" ""
    CelReworded "rule-reworded" Compatible "" ""
    Described "description-changed" Compatible "" ""
    KeywordChanged "keyword-changed" Breaking
        "the comparison does not know this keyword"
        "compare by hand"
}
