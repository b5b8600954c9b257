//! The forms in which a cache keeps the objects of a kind.
//!
//! Compact bytes are the default because most objects are never read. A kind that is read over and
//! over, or never, or in a part only, has a cheaper form. Not included: the forms themselves
//! (`object/content.rs`), and the choice for each kind (`CacheOptions` of the informers).

/// Form in which the cache keeps the objects of a kind.
///
/// For a type that derives `Projection` only the bytes of the type's fields are kept, and a read
/// decodes them; with [`Typed`](Self::Typed) the decoded value is kept.
///
/// | | kept | a read costs | resident, relative to `Compact` |
/// |---|---|---|---|
/// | [`Compact`](Self::Compact) | JSON, no managedFields | decoding, shared while held | 1 |
/// | [`Typed`](Self::Typed) | the decoded value | a pointer | 7 |
/// | a projection | the JSON of its fields | decoding them: 3 µs, shared while held | 1/5 |
/// | [`Metadata`](Self::Metadata) | `metadata` | decoding metadata | 1/5 |
/// | [`Cold`](Self::Cold) | compressed JSON | 2 µs more than `Compact` | 1/8 |
///
/// The ratios are those of 100,000 Pods of 8.4 KB with two indexes; `BENCHMARKS.md` has the bytes.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use windlass::informer::CacheOptions;
/// use windlass::store::Representation;
///
/// // Pods that are only looked up by their owner.
/// let options = CacheOptions::default().representation(Representation::Metadata);
/// assert_ne!(options, CacheOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Representation {
    /// The JSON as received, without `apiVersion`, `kind` and `metadata.managedFields`; decoded by
    /// the first read and shared for as long as a reader holds the value. The default.
    #[default]
    Compact,
    /// The value, decoded once on arrival: for small kinds that are read on every event.
    ///
    /// The bytes are dropped. Fields that the type does not have are not kept, so an index on a
    /// path outside of `metadata` has to be declared before the first list. Unsuitable for many
    /// objects or large ones: a decoded Pod takes seven times the size of the JSON, and the lists
    /// keep the spare capacity that serde allocated.
    Typed,
    /// `metadata` only, for kinds that are looked up by name, label or owner.
    ///
    /// The server is asked for metadata only. The rest of an object reads as absent: use
    /// [`PartialObject`](windlass_core::resource::PartialObject), as types with required fields do
    /// not decode.
    Metadata,
    /// Compressed with a dictionary that is trained from the kind's own first objects; compact
    /// until then.
    ///
    /// For many objects that are rarely read. Without the feature `cold` the same as
    /// [`Compact`](Self::Compact), with a warning in the log.
    Cold,
}
