//! Compressed objects: a dictionary per kind, trained from its first objects.
//!
//! Objects of a kind are alike: an object alone compresses to a third, and to a twelfth with a
//! dictionary. Metadata and body are packed apart, so that reading labels or versions unpacks
//! nothing. When the objects of a kind change, the ratio falls and a new dictionary is trained; old
//! dictionaries live as long as objects that need them.
//!
//! Not included: the choice of the kinds that are cold, and the compressed form (`object/cold.rs`).

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use zstd_safe::{CCtx, CDict, DDict};

use crate::store::object::{
    Buffer, BufferPool, Cold, ColdShared, Dictionary, InternedMeta, LENGTHS, Object, Readers,
};

/// Objects that a dictionary is trained from.
const SAMPLES: usize = 256;
/// Most sample bytes: training costs about 60 ms per megabyte.
const SAMPLE_BYTES: usize = 1 << 20;
/// Largest object that becomes a sample, in bytes.
const LARGEST_SAMPLE: usize = 128 << 10;
/// Bytes of a dictionary; twice that is held, once for each direction.
const DICTIONARY: usize = 48 << 10;
/// zstd's fastest ordinary level: higher levels save 2 % here.
const LEVEL: i32 = 1;
/// Objects over which a ratio is measured.
const WINDOW: usize = 512;
/// Ratio at which a dictionary is replaced, in percent of the first dictionary's ratio.
const RETRAIN_PERCENT: usize = 150;
/// Objects between two trainings, at first; doubled each time.
const BETWEEN: usize = 8 * SAMPLES;

/// Compresses the objects of a store.
#[derive(Default)]
pub(crate) struct Compressor {
    /// Dictionary, samples and ratio.
    state: Mutex<State>,
    /// Contexts for unpacking, which all dictionaries of the store share.
    readers: Arc<Readers>,
    /// Heads that objects have in common, each with a dictionary.
    heads: InternedMeta<ColdShared>,
}

/// The state of the compressor that the lock protects.
#[derive(Default)]
struct State {
    /// The dictionary for new objects; `None` until the first training.
    dictionary: Option<Arc<Dictionary>>,
    /// Context for packing; made at the first use.
    writer: Option<CCtx<'static>>,
    /// Buffer of the last packing; reused.
    packed: Vec<u8>,
    /// Samples of the next dictionary; `None` while no training is due.
    samples: Option<Samples>,
    /// Ratio of the present dictionary.
    ratio: Ratio,
}

/// Input of the training of a dictionary.
#[derive(Default)]
struct Samples {
    /// The sampled bodies, concatenated, as zstd takes them.
    bytes: Vec<u8>,
    /// Length of each body.
    lengths: Vec<usize>,
    /// The sampled objects, which stay compact until there is a dictionary.
    waiting: Vec<Weak<Object>>,
}

/// Compression ratio of the current dictionary.
#[derive(Default)]
struct Ratio {
    /// Objects in the present window.
    count: usize,
    /// Bytes of their bodies.
    raw: usize,
    /// Bytes that they were packed into; an object that was not packed counts with the body.
    packed: usize,
    /// Packed bytes per 1000, in the first window.
    at_first: Option<usize>,
    /// Objects packed since the training.
    since: usize,
    /// Objects to pack before the next training.
    wait: usize,
}

impl Ratio {
    /// Counts an object; returns true when a new dictionary is due.
    fn note(&mut self, raw: usize, packed: usize) -> bool {
        self.since += 1;
        self.count += 1;
        self.raw += raw;
        self.packed += packed;
        if self.count < WINDOW {
            return false;
        }
        let now = self.packed * 1000 / self.raw.max(1);
        (self.count, self.raw, self.packed) = (0, 0, 0);
        match self.at_first {
            None => {
                self.at_first = Some(now);
                false
            }
            Some(first) => now * 100 > first.max(1) * RETRAIN_PERCENT && self.since >= self.wait,
        }
    }

    /// Returns the ratio of a new dictionary, with twice the wait until the next training.
    fn renewed(&self) -> Self {
        Self { wait: (self.wait * 2).max(BETWEEN), ..Self::default() }
    }
}

impl Compressor {
    /// Compresses `body`; `None` while there is no dictionary, or when the body would not get
    /// smaller.
    pub(in crate::store) fn pack(
        &self,
        object: &Arc<Object>,
        (own, common): (&[u8], &[u8]),
        body: &[u8],
        before: Option<&Cold>,
        memory: &BufferPool,
    ) -> Option<Cold> {
        // Held while compressing: the context and the buffer are shared.
        let mut state = self.state.lock();
        if state.dictionary.is_none() && state.samples.is_none() {
            state.samples = Some(Samples::default());
        }
        if state.samples.as_mut().is_some_and(|samples| samples.add(object, body)) {
            return None;
        }
        let dictionary = state.dictionary.as_ref().map(Arc::clone)?;
        let packed = state.pack(&dictionary, own, body, memory);
        let cold = packed.map(|bytes| {
            let fits = |shared: &ColdShared| Arc::ptr_eq(&shared.dictionary, &dictionary);
            let before = before.map(|before| &before.shared);
            let shared = match before.filter(|before| *before.head == *common && fits(before)) {
                Some(before) => Arc::clone(before),
                None => self.heads.share(common, fits, |head| ColdShared {
                    dictionary: Arc::clone(&dictionary),
                    head: head.into(),
                }),
            };
            Cold { bytes, shared }
        });
        let packed = cold.as_ref().map_or(body.len(), |cold| cold.bytes.len());
        if state.ratio.note(body.len(), packed) && state.samples.is_none() {
            state.samples = Some(Samples::default());
        }
        cold
    }

    /// Trains a dictionary if there are enough samples, which takes tens of milliseconds. Returns
    /// the objects that waited for the dictionary.
    pub(in crate::store) fn train(&self) -> Vec<Arc<Object>> {
        // The samples are taken out, and the training runs without the lock: objects can be packed
        // meanwhile.
        let samples = {
            let mut state = self.state.lock();
            if !state.samples.as_ref().is_some_and(Samples::is_full) {
                return Vec::new();
            }
            state.samples.take()
        };
        let Some(samples) = samples else { return Vec::new() };
        let Some(dictionary) = self.dictionary(&samples) else { return Vec::new() };
        let mut state = self.state.lock();
        state.ratio = state.ratio.renewed();
        let before = state.dictionary.replace(Arc::new(dictionary));
        drop(state);
        // Freed outside of the lock, if this was the last reference.
        drop(before);
        samples.waiting.iter().filter_map(Weak::upgrade).collect()
    }

    /// Trains a dictionary from samples; `None` if zstd fails.
    fn dictionary(&self, samples: &Samples) -> Option<Dictionary> {
        let mut dictionary: Vec<u8> = Vec::with_capacity(DICTIONARY);
        // Too few or too small samples to learn from: the newest are the dictionary, as they are.
        if zstd_safe::train_from_buffer(&mut dictionary, &samples.bytes, &samples.lengths).is_err()
        {
            let from = samples.bytes.len().saturating_sub(DICTIONARY);
            dictionary = samples.bytes[from..].to_vec();
        }
        Some(Dictionary {
            pack: CDict::try_create(&dictionary, LEVEL)?,
            unpack: DDict::try_create(&dictionary)?,
            readers: Arc::clone(&self.readers),
        })
    }
}

impl State {
    /// Packs `body` behind `head`; `None` when that does not save a quarter, or zstd fails.
    fn pack(
        &mut self,
        dictionary: &Arc<Dictionary>,
        head: &[u8],
        body: &[u8],
        memory: &BufferPool,
    ) -> Option<Buffer> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(CCtx::try_create()?),
        };
        self.packed.clear();
        self.packed.reserve(zstd_safe::compress_bound(body.len()));
        writer.compress_using_cdict(&mut self.packed, body, &dictionary.pack).ok()?;
        let packed = &self.packed;
        let (head_length, length) =
            (u32::try_from(head.len()).ok()?, u32::try_from(body.len()).ok()?);
        let size = LENGTHS + head.len() + packed.len();
        // Packing pays only if a quarter is saved, the head included.
        let is_worth_it = size < body.len() / 4 * 3;
        let buffer = is_worth_it.then(|| {
            memory.buffer(size, |bytes| {
                bytes.extend_from_slice(&head_length.to_le_bytes());
                bytes.extend_from_slice(&length.to_le_bytes());
                bytes.extend_from_slice(head);
                bytes.extend_from_slice(packed);
            })
        });
        // A single large object must not determine the buffer's size.
        self.packed.clear();
        self.packed.shrink_to(LARGEST_SAMPLE);
        buffer
    }
}

impl Samples {
    /// Adds a sample; returns false when there are enough, or when the object is too large.
    fn add(&mut self, object: &Arc<Object>, body: &[u8]) -> bool {
        if self.is_full() || body.len() > LARGEST_SAMPLE {
            return false;
        }
        self.bytes.extend_from_slice(body);
        self.lengths.push(body.len());
        self.waiting.push(Arc::downgrade(object));
        true
    }

    /// Whether the samples are enough for a dictionary.
    fn is_full(&self) -> bool {
        self.lengths.len() >= SAMPLES || self.bytes.len() >= SAMPLE_BYTES
    }
}
