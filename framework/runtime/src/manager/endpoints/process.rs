//! The `process_*` metrics, from `/proc`; empty on systems without `/proc`.

use std::fmt::Write;

/// Ticks per second in `/proc`, the same on every Linux machine that runs this.
const TICKS: f64 = 100.0;

/// Returns the process metrics in the exposition format, without the closing `# EOF`.
pub(crate) fn encode() -> String {
    let mut text = String::new();
    let Some(stat) = std::fs::read_to_string("/proc/self/stat").ok() else { return text };
    // The command's name may hold spaces and parentheses; the numbers follow the last parenthesis.
    let fields: Vec<f64> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().map(|n| n.parse().unwrap_or(0.0)).collect())
        .unwrap_or_default();
    // Numbers as in proc(5), where the first field after the name is number 3.
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0.0);
    gauge(&mut text, "process_virtual_memory_bytes", "Virtual memory size", field(23));
    if let Some(bytes) = resident() {
        gauge(&mut text, "process_resident_memory_bytes", "Resident memory size", bytes as f64);
    }
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        let count = entries.count() as f64;
        gauge(&mut text, "process_open_fds", "Number of open file descriptors", count);
    }
    if let Some(limit) = descriptor_limit() {
        gauge(&mut text, "process_max_fds", "Maximum number of open file descriptors", limit);
    }
    if let Some(boot) = boot_seconds() {
        let help = "Start time of the process since the epoch";
        gauge(&mut text, "process_start_time_seconds", help, boot + field(22) / TICKS);
    }
    let cpu = (field(14) + field(15)) / TICKS;
    let _ = write!(
        text,
        "# HELP process_cpu_seconds Total user and system CPU time spent.\n\
         # TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total {cpu}\n"
    );
    text
}

fn gauge(text: &mut String, name: &str, help: &str, value: f64) {
    let _ = write!(text, "# HELP {name} {help}.\n# TYPE {name} gauge\n{name} {value}\n");
}

/// Returns the bytes of resident memory.
pub(crate) fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn descriptor_limit() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn boot_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "reads /proc, which Linux has")]
    fn the_process_reports_its_memory_descriptors_and_start() {
        let text = encode();
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
            line.and_then(|line| line.rsplit_once(' ')).unwrap().1.parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_start_time_seconds") > 1.6e9);
        assert!(text.contains("process_cpu_seconds_total "));
    }
}
