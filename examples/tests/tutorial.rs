//! Comparison of the book's chapter "Your first operator" with the program.

const CHAPTER: &str = include_str!("../../book/src/first-operator.md");
const PROGRAM: &str = include_str!("../src/bin/first_operator.rs");

/// Returns the lines of all blocks that are marked `rust`, in order.
fn blocks(chapter: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut is_open = false;
    for line in chapter.lines() {
        match line {
            "```rust" => is_open = true,
            "```" => is_open = false,
            line if is_open => lines.push(line),
            _ => {}
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

#[test]
fn the_blocks_of_the_chapter_are_the_program() {
    let is_header = |line: &&str| line.starts_with("//!");
    let program: Vec<_> =
        PROGRAM.lines().filter(|line| !line.is_empty()).skip_while(is_header).collect();
    let chapter = blocks(CHAPTER);
    let differs = chapter.iter().zip(&program).find(|(chapter, program)| chapter != program);
    assert_eq!(differs, None, "a line of the chapter, and the program's");
    assert_eq!(chapter.len(), program.len(), "one of them goes on where the other ends");
}

#[test]
fn nothing_in_the_chapter_is_hidden() {
    let hidden: Vec<_> = CHAPTER
        .lines()
        .filter(|line| line.starts_with("# ") && line.contains("use "))
        .chain(CHAPTER.lines().filter(|line| line.starts_with("```rust,")))
        .collect();
    assert!(hidden.is_empty(), "a reader types what is visible: {hidden:?}");
}
