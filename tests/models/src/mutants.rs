//! Reads `mutants.txt`: after a line `mutant NAME in FILE: what it breaks`, lines that begin with
//! `-` are the text to replace and lines that begin with `+` are what to put there.

/// One change of the source that a model must notice.
pub struct Mutant {
    pub name: String,
    pub file: String,
    pub old: String,
    pub new: String,
}

/// All mutants of a list.
pub fn parse(list: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for (number, line) in list.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = || format!("line {}: {line:?}", number + 1);
        if let Some(rest) = line.strip_prefix("mutant ") {
            let (name, rest) = rest.split_once(" in ").ok_or_else(fault)?;
            let (file, _breaks) = rest.split_once(": ").ok_or_else(fault)?;
            let (old, new) = (String::new(), String::new());
            mutants.push(Mutant { name: name.into(), file: file.into(), old, new });
            continue;
        }
        let mutant = mutants.last_mut().ok_or_else(fault)?;
        let (text, rest) = match (line.strip_prefix('-'), line.strip_prefix('+')) {
            (Some(rest), _) => (&mut mutant.old, rest),
            (_, Some(rest)) => (&mut mutant.new, rest),
            _ => return Err(fault()),
        };
        // The mark takes no room: what follows it stands as in the source.
        text.push_str(rest);
        text.push('\n');
    }
    match mutants.iter().find(|mutant| mutant.old.is_empty()) {
        Some(mutant) => Err(format!("mutant {} replaces nothing", mutant.name)),
        None => Ok(mutants),
    }
}
