//! Objects as text with holes.

/// The kind that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pods: 8.4 KB, two managers, two containers, three volumes, 20 to an app.
    Pod,
    /// Custom resources of 1 KB.
    Widget,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Widget => "Widget",
        }
    }

    pub fn api_version(self) -> &'static str {
        match self {
            Self::Pod => "v1",
            Self::Widget => "peers.example.dev/v1",
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::Pod => "/api/v1/pods",
            Self::Widget => "/apis/peers.example.dev/v1/widgets",
        }
    }

    /// The longest padding.
    pub fn padding(self) -> usize {
        match self {
            Self::Pod => 512,
            Self::Widget => 128,
        }
    }

    fn template(self) -> &'static str {
        match self {
            Self::Pod => include_str!("pod.json"),
            Self::Widget => include_str!("widget.json"),
        }
    }

    /// As API servers send them: built-in kinds without their type inside of lists.
    pub fn is_typed_in_lists(self) -> bool {
        self == Self::Widget
    }

    /// Bytes before the fields of an object that carries the type.
    pub fn preamble(self) -> &'static str {
        match self {
            Self::Pod => r#"{"kind":"Pod","apiVersion":"v1","#,
            Self::Widget => r#"{"apiVersion":"peers.example.dev/v1","kind":"Widget","#,
        }
    }
}

/// A hole in an object's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Version,
    Stamp,
    Padding,
}

/// An object: pieces of text, each but the last followed by a hole.
#[derive(Debug)]
pub struct Object {
    pub namespace: String,
    pub name: String,
    text: Box<str>,
    ends: Vec<(u32, Hole)>,
}

/// Values for the holes of a version.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    pub version: u64,
    pub stamp: u64,
    pub padding: &'a str,
}

impl Object {
    /// The object of that number.
    pub fn new(kind: Kind, seed: u64, index: usize) -> Self {
        let app = index / 20;
        let namespace = format!("team-{}", app % 50);
        let name = match kind {
            Kind::Pod => format!("app-{app}-{:08x}-{:05x}", mix(seed, app as u64) as u32, index),
            Kind::Widget => format!("widget-{index:07}"),
        };
        let mut text = String::with_capacity(8 << 10);
        let mut ends = Vec::new();
        for (at, piece) in kind.template().trim_end().split('%').enumerate() {
            // Every other piece is the name of a hole.
            if at % 2 == 0 {
                text.push_str(piece);
                continue;
            }
            let mut hole = |hole| ends.push((u32::try_from(text.len()).unwrap_or(0), hole));
            match piece {
                "version" => hole(Hole::Version),
                "stamp" => hole(Hole::Stamp),
                "padding" => hole(Hole::Padding),
                "namespace" => text.push_str(&namespace),
                "name" => text.push_str(&name),
                "app" => text.push_str(&format!("app-{app}")),
                "set" => text.push_str(&format!("app-{app}-{:08x}", mix(seed, app as u64) as u32)),
                "node" => text.push_str(&format!("node-{}", index % 200)),
                "uid" => text.push_str(&uid(seed, index as u64)),
                "owner" => text.push_str(&uid(!seed, app as u64)),
                "ip" => text.push_str(&format!(
                    "10.{}.{}.{}",
                    index >> 16 & 255,
                    index >> 8 & 255,
                    index & 255
                )),
                "number" => text.push_str(&index.to_string()),
                other => panic!("no placeholder {other:?}"),
            }
        }
        Self { namespace, name, text: text.into_boxed_str(), ends }
    }

    /// Writes the text, without the opening brace.
    pub fn render(&self, filling: Filling<'_>, out: &mut Vec<u8>) {
        let mut from = 1;
        for (end, hole) in &self.ends {
            let end = *end as usize;
            out.extend_from_slice(&self.text.as_bytes()[from..end]);
            match hole {
                Hole::Version => push_digits(out, filling.version, 8),
                Hole::Stamp => push_digits(out, filling.stamp, 19),
                Hole::Padding => out.extend_from_slice(filling.padding.as_bytes()),
            }
            from = end;
        }
        out.extend_from_slice(&self.text.as_bytes()[from..]);
    }
}

/// A number with leading zeros, so that the length never changes.
pub fn push_digits(out: &mut Vec<u8>, mut number: u64, width: usize) {
    let at = out.len();
    out.resize(at + width, b'0');
    for digit in out[at..].iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

/// Splitmix64 of two numbers.
pub fn mix(seed: u64, number: u64) -> u64 {
    let mut value = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn uid(seed: u64, number: u64) -> String {
    let (a, b) = (mix(seed, number), mix(seed ^ 0x5bd1, number));
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}

/// Text to cut paddings from: words, because real messages compress.
pub fn words(seed: u64, length: usize) -> String {
    const WORDS: [&str; 24] = [
        "container",
        "started",
        "waiting",
        "for",
        "volume",
        "probe",
        "failed",
        "with",
        "status",
        "image",
        "pulled",
        "node",
        "ready",
        "condition",
        "scheduled",
        "the",
        "back-off",
        "restart",
        "timeout",
        "after",
        "seconds",
        "on",
        "address",
        "attempt",
    ];
    let mut text = String::with_capacity(length + 32);
    let mut at = 0;
    while text.len() < length {
        let draw = mix(seed, at);
        text.push_str(WORDS[usize::try_from(draw % 24).unwrap_or(0)]);
        text.push_str(&format!(" {} ", draw >> 50));
        at += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(kind: Kind) -> usize {
        let mut out = kind.preamble().as_bytes().to_vec();
        let padding = words(1, 4096);
        let padding = &padding[..kind.padding() / 2];
        Object::new(kind, 1, 4711).render(Filling { version: 1, stamp: 0, padding }, &mut out);
        assert_eq!((out[0], out[out.len() - 1]), (b'{', b'}'));
        out.len()
    }

    #[test]
    fn objects_are_as_large_as_they_are_said_to_be() {
        let (pod, widget) = (length(Kind::Pod), length(Kind::Widget));
        assert!((8_300..8_560).contains(&pod), "a Pod has {pod} bytes");
        assert!((980..1_060).contains(&widget), "a Widget has {widget} bytes");
    }

    #[test]
    fn numbers_keep_their_width() {
        let mut out = Vec::new();
        push_digits(&mut out, 42, 8);
        assert_eq!(out, b"00000042");
    }
}
