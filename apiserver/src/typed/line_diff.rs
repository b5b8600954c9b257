//! The difference between two texts line by line, as kube-apiserver's library writes it.
//!
//! The library takes the longest common run of lines, and goes on before and behind that run; in
//! texts of 200 lines or more, frequent lines begin no run.

use std::collections::BTreeMap;
use std::ops::Range;

/// Lines of a text above which no difference is written: the search would take too long.
const MOST_LINES: usize = 2000;
/// Unchanged lines around a change.
const AROUND: usize = 3;
/// Lines of a text from which on frequent lines begin no run.
const LONG: usize = 200;

/// A run of lines that both texts have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CommonLines {
    old: usize,
    new: usize,
    length: usize,
}

/// Equal or changed lines of both texts.
#[derive(Clone)]
struct DiffSection {
    is_equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// Returns the changes from one text to another with the lines around them; empty without changes,
/// and for texts of thousands of lines.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    if old.len().max(new.len()) > MOST_LINES {
        return String::new();
    }
    groups(parts(&old, &new)).iter().map(|group| hunk(group, &old, &new)).collect()
}

/// Returns the places of the lines of a text, without frequent lines.
fn places<'a>(lines: &[&'a str]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if lines.len() >= LONG {
        places.retain(|_, found| found.len() <= lines.len() / 100 + 1);
    }
    places
}

/// Returns the longest run within ranges of both texts; the first of several.
fn longest(
    texts: (&[&str], &[&str]),
    places: &BTreeMap<&str, Vec<usize>>,
    old: &Range<usize>,
    new: &Range<usize>,
) -> CommonLines {
    let mut best = CommonLines { old: old.start, new: new.start, length: 0 };
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for at in old.clone() {
        let mut now = BTreeMap::new();
        let found = places.get(texts.0[at]).into_iter().flatten();
        for place in found.copied().filter(|place| new.contains(place)) {
            let before = place.checked_sub(1).and_then(|place| lengths.get(&place));
            let length = before.copied().unwrap_or(0) + 1;
            now.insert(place, length);
            if length > best.length {
                best = CommonLines { old: at + 1 - length, new: place + 1 - length, length };
            }
        }
        lengths = now;
    }
    // Frequent lines belong to a run that they do not begin.
    while best.old > old.start
        && best.new > new.start
        && texts.0[best.old - 1] == texts.1[best.new - 1]
    {
        best = CommonLines { old: best.old - 1, new: best.new - 1, length: best.length + 1 };
    }
    while best.old + best.length < old.end
        && best.new + best.length < new.end
        && texts.0[best.old + best.length] == texts.1[best.new + best.length]
    {
        best.length += 1;
    }
    best
}

/// Returns the equal and the changed parts of two texts, in order.
fn parts(old: &[&str], new: &[&str]) -> Vec<DiffSection> {
    let places = places(new);
    let mut runs = Vec::new();
    // A list of ranges in place of recursion, whose depth a client would choose.
    let mut due = vec![(0..old.len(), 0..new.len())];
    while let Some((olds, news)) = due.pop() {
        let run = longest((old, new), &places, &olds, &news);
        if run.length == 0 {
            continue;
        }
        runs.push(run);
        if olds.start < run.old && news.start < run.new {
            due.push((olds.start..run.old, news.start..run.new));
        }
        let (end, other) = (run.old + run.length, run.new + run.length);
        if end < olds.end && other < news.end {
            due.push((end..olds.end, other..news.end));
        }
    }
    runs.sort_unstable();
    runs.push(CommonLines { old: old.len(), new: new.len(), length: 0 });
    let mut found: Vec<DiffSection> = Vec::new();
    let (mut at, mut other) = (0, 0);
    for run in runs {
        if at < run.old || other < run.new {
            found.push(DiffSection { is_equal: false, old: at..run.old, new: other..run.new });
        }
        (at, other) = (run.old + run.length, run.new + run.length);
        match found.last_mut() {
            // Runs that touch are one.
            Some(last) if last.is_equal && run.length > 0 => {
                (last.old.end, last.new.end) = (at, other);
            }
            _ if run.length > 0 => {
                found.push(DiffSection { is_equal: true, old: run.old..at, new: run.new..other });
            }
            _ => {}
        }
    }
    found
}

/// Returns groups of changes, each with the lines around.
fn groups(mut parts: Vec<DiffSection>) -> Vec<Vec<DiffSection>> {
    if let Some(first) = parts.first_mut().filter(|part| part.is_equal) {
        keep_last(first);
    }
    if let Some(last) = parts.last_mut().filter(|part| part.is_equal) {
        keep_first(last);
    }
    let mut found = Vec::new();
    let mut group: Vec<DiffSection> = Vec::new();
    for mut part in parts {
        if part.is_equal && part.old.len() > 2 * AROUND {
            let mut head = part.clone();
            keep_first(&mut head);
            group.push(head);
            found.push(std::mem::take(&mut group));
            keep_last(&mut part);
        }
        group.push(part);
    }
    found.push(group);
    found.retain(|group| group.iter().any(|part| !part.is_equal));
    found
}

/// Shortens a part to its last lines.
fn keep_last(part: &mut DiffSection) {
    part.old.start = part.old.start.max(part.old.end.saturating_sub(AROUND));
    part.new.start = part.new.start.max(part.new.end.saturating_sub(AROUND));
}

/// Shortens a part to its first lines.
fn keep_first(part: &mut DiffSection) {
    part.old.end = part.old.end.min(part.old.start + AROUND);
    part.new.end = part.new.end.min(part.new.start + AROUND);
}

/// Returns a group as text.
fn hunk(group: &[DiffSection], old: &[&str], new: &[&str]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return String::new() };
    let olds = shown(&(first.old.start..last.old.end));
    let news = shown(&(first.new.start..last.new.end));
    let mut text = format!("@@ -{olds} +{news} @@\n");
    let mut put = |sign: char, lines: &[&str]| {
        for line in lines {
            text.push(sign);
            text.push_str(line);
            text.push('\n');
        }
    };
    for part in group {
        if part.is_equal {
            put(' ', &old[part.old.clone()]);
        } else {
            put('-', &old[part.old.clone()]);
            put('+', &new[part.new.clone()]);
        }
    }
    text
}

/// Returns a range of lines as text.
fn shown(range: &Range<usize>) -> String {
    match range.len() {
        1 => (range.start + 1).to_string(),
        // An empty range begins at the line before.
        0 => format!("{},0", range.start),
        length => format!("{},{length}", range.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_among_three_lines_on_each_side() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh";
        let new = "a\nb\nc\nd\nx\ny\nf\ng\nh";
        assert_eq!(unified(old, new), "@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+x\n+y\n f\n g\n h\n");
        assert_eq!(unified(old, old), "");
    }

    #[test]
    fn changes_far_apart_are_told_apart() {
        let lines = |changed: &[usize]| {
            let line = |at: usize| if changed.contains(&at) { "x".into() } else { at.to_string() };
            (0..40).map(line).collect::<Vec<String>>().join("\n")
        };
        let text = unified(&lines(&[]), &lines(&[5, 30]));
        assert_eq!(text.matches("@@ -").count(), 2, "{text}");
        assert!(text.starts_with("@@ -3,7 +3,7 @@\n"), "{text}");
    }

    #[test]
    fn an_added_line_has_no_line_before() {
        assert_eq!(unified("a", "b\na"), "@@ -1 +1,2 @@\n+b\n a\n");
    }
}
