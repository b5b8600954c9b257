//! Guard of a program: it lives no longer than the process that started it, however that process
//! ends.
//!
//! A shell stands between the two. The shell obeys words on its standard input, and at the end of
//! the input, which comes when our process is gone, the shell kills the program and removes the
//! folder.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Source of the shell, run as `sh -c SCRIPT guard FOLDER PROGRAM ARGUMENT…`.
///
/// The program's standard input is empty, and its output is appended to `log`, so that a second
/// start keeps the log of the first. `INT` has an empty handler: Ctrl-C in a terminal reaches the
/// whole process group, and the shell must outlive the test process to clean up. Each word is
/// answered by `done` once obeyed.
const SCRIPT: &str = r#"folder="$1"; shift
trap : INT
child=
begin() { "$@" >>"$folder/log" 2>&1 </dev/null & child=$!; }
begin "$@"
while read -r word; do
  case "$word" in
    begin) begin "$@" ;;
    TERM|KILL) kill -s "$word" "$child"; wait "$child"; child= ;;
    # The signal is still on its way when kill returns: a busy machine obeys it later.
    STOP) kill -s STOP "$child"; looks=0
      until case "$(ps -o stat= -p "$child")" in T*) ;; *) [ "$looks" -ge 100 ] ;; esac; do
        looks=$((looks + 1)); sleep 0.02
      done ;;
    *) kill -s "$word" "$child" ;;
  esac 2>/dev/null
  echo done
done
[ -z "$child" ] || { kill -s KILL "$child"; wait "$child"; } 2>/dev/null
rm -rf "$folder""#;

/// A program that runs until ended by a word, or until the guard is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    /// The shell; the drop of the guard waits for its end.
    shell: Child,
    /// Input of the shell; `None` while this is dropped.
    words: Option<ChildStdin>,
    /// Output of the shell: a line `done` for each word.
    answers: Option<BufReader<ChildStdout>>,
}

/// Command for a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// Start again with the same arguments.
    Begin,
    /// End in order.
    Terminate,
    /// End at once.
    Kill,
    /// Stop executing: sockets stay open, no request is answered.
    Stop,
    /// Go on.
    Continue,
}

impl Guard {
    /// Starts `program`; the output goes to the file `log` in `folder`.
    ///
    /// The shell is started then, and the program not ready yet. A program that does not exist is
    /// no error here: the log has the reason.
    pub(super) fn start(folder: &Path, program: &Path, arguments: &[String]) -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "guard"])
            .arg(folder)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let words = shell.stdin.take();
        let answers = shell.stdout.take().map(BufReader::new);
        Ok(Self { shell, words, answers })
    }

    /// Sends a command and waits, blocking the thread, until the shell has obeyed: after
    /// [`Word::Terminate`] and [`Word::Kill`] until the program is gone.
    ///
    /// A failure is [`BrokenPipe`](io::ErrorKind::BrokenPipe): the shell is gone, and so is the
    /// program.
    pub(super) fn send(&mut self, word: Word) -> io::Result<()> {
        let word = match word {
            Word::Begin => "begin\n",
            Word::Terminate => "TERM\n",
            Word::Kill => "KILL\n",
            Word::Stop => "STOP\n",
            Word::Continue => "CONT\n",
        };
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "its guard is gone");
        let (words, answers) = self.words.as_mut().zip(self.answers.as_mut()).ok_or_else(gone)?;
        words.write_all(word.as_bytes())?;
        // The answer comes only after the shell has read a whole line.
        words.flush()?;
        let mut answer = String::new();
        answers.read_line(&mut answer)?;
        // No line means that the shell is gone.
        if answer.trim() == "done" { Ok(()) } else { Err(gone()) }
    }
}

impl Drop for Guard {
    /// Waits for the end, which takes milliseconds: the next test may want the port.
    fn drop(&mut self) {
        // Ends the shell's input, at which the shell kills the program and removes the folder.
        self.words = None;
        let _ = self.shell.wait();
    }
}
