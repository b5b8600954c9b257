//! Streams cut into documents: the frames of a watch, and the items of a list.

mod carry;
mod frame;
mod list;

pub use carry::MAX_PIECE;
pub use carry::StreamPiece;
pub use frame::{EventType, Frame, FrameDecoder};
pub use list::{ListMeta, ListSplitter};
