//! Byte ranges that are left out of an object.

/// Most members that are cut; further members (repeated names) stay.
const MOST_CUTS: usize = 4;

/// Byte ranges to leave out, by start; they may overlap.
#[derive(Debug, Default)]
pub(super) struct CutRanges {
    /// On the stack: an object is scanned for each event, and an allocation would cost more than
    /// the cuts.
    ranges: [(usize, usize); MOST_CUTS],
    /// Number of ranges in use.
    count: usize,
}

impl CutRanges {
    /// Adds a range, unless there are too many: a further range stays in the bytes, which is
    /// harmless.
    pub(super) fn add(&mut self, start: usize, end: usize) {
        if self.count < MOST_CUTS {
            self.ranges[self.count] = (start, end);
            self.count += 1;
            // The cut of a member is known at the next member, after the cuts inside that member.
            self.ranges[..self.count].sort_unstable();
        }
    }

    /// Returns the ranges, by start.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ranges[..self.count].iter().copied()
    }

    /// Returns the ranges that are kept of `length` bytes.
    pub(super) fn complement(&self, length: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        self.iter().chain([(length, length)]).filter_map(move |(start, end)| {
            let kept = (at, start);
            at = at.max(end);
            (kept.0 < kept.1).then_some(kept)
        })
    }
}

/// Computes cuts that leave valid commas: up to the next member, or from the end of the last kept
/// member.
pub(super) struct CutBuilder {
    /// End of the last member that is kept, or of the opening brace.
    kept_end: usize,
    /// Start of a cut whose end is the start of the next member.
    pub(super) pending: Option<usize>,
}

impl CutBuilder {
    /// Begins behind the opening brace of an object.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let brace = crate::wire::scanner::scan::skip_space(bytes, 0);
        Self { kept_end: brace + 1, pending: None }
    }

    /// Handles the next member of the object.
    pub(super) fn member(&mut self, start: usize, end: usize, cut: bool, cuts: &mut CutRanges) {
        if let Some(cut_from) = self.pending.take() {
            cuts.add(cut_from, start);
        }
        if cut {
            self.pending = Some(start);
        } else {
            self.kept_end = end;
        }
    }

    /// Ends an object whose closing brace is at `close`.
    pub(super) fn close(&mut self, close: usize, cuts: &mut CutRanges) {
        if self.pending.take().is_some() {
            cuts.add(self.kept_end, close);
        }
    }
}
