//! Completion indexes: which are done, which run, which are free.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::objects;

/// Label and annotation of a Pod with the index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Returns the index of a Pod.
pub(super) fn of(pod: &Value) -> Option<usize> {
    pod["metadata"]["annotations"][INDEX].as_str()?.parse().ok()
}

/// Reads a list of indexes such as `0,2-4`.
pub(super) fn read(text: &str) -> BTreeSet<usize> {
    // As many as a Job may have, also if a client has written more: a range written over and over
    // counts each time.
    let mut left = 100_000;
    let mut all = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            let range = (first..=last).take(left);
            left -= range.clone().count();
            all.extend(range);
        }
        if left == 0 {
            break;
        }
    }
    all
}

/// Returns a list of indexes, with neighbours joined.
pub(super) fn write(all: &BTreeSet<usize>) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for index in all {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*index) => *last = *index,
            _ => parts.push((*index, *index)),
        }
    }
    let part = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// Returns the indexes that have neither succeeded nor run, the lowest first.
pub(super) fn free(job: &Value, active: &[Value], done: &BTreeSet<usize>) -> Vec<usize> {
    let total = usize::try_from(objects::number(job, "completions", 0)).unwrap_or(0);
    let running: BTreeSet<usize> = active.iter().filter_map(of).collect();
    let is_free = |index: &usize| !done.contains(index) && !running.contains(index);
    let most = usize::try_from(objects::number(job, "parallelism", 1)).unwrap_or(0);
    (0..total).filter(is_free).take(most.min(super::super::pods::BURST)).collect()
}

/// Adds the variable `JOB_COMPLETION_INDEX` to each container.
pub(super) fn add_index_variable(spec: &mut Value) {
    const NAME: &str = "JOB_COMPLETION_INDEX";
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let mut variables = objects::items(container, "env").to_vec();
            if variables.iter().any(|one| one["name"] == NAME) {
                continue;
            }
            let path = format!("metadata.labels['{INDEX}']");
            variables.push(json!({"name": NAME, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
            container["env"] = json!(variables);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_a_client_wrote_over_and_over_are_read_up_to_a_bound() {
        let started = read(&"0-99999,".repeat(300_000));
        assert_eq!(started.len(), 100_000);
        let last = usize::MAX;
        assert_eq!(write(&read(&format!("{},{last}", last - 1))), format!("{},{last}", last - 1));
    }

    #[test]
    fn lists_of_indexes_join_three_neighbours_and_more() {
        let all: BTreeSet<usize> = [0, 2, 3, 5, 6, 7].into_iter().collect();
        assert_eq!(write(&all), "0,2,3,5-7");
        assert_eq!(read("0,2,3,5-7"), all);
        assert_eq!(read("x,9-"), BTreeSet::new());
    }
}
