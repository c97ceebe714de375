//! `channel.k8s.io`, the protocol of exec and attach: its versions, and the streams of one command.

/// A version. 1 and 2 know input, output and errors; 3 adds the size of the terminal; 4 says how the command ended as a
/// `Status` in JSON. (5 is the same on SPDY: what it adds, WebSocket had not.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    V1,
    V2,
    V3,
    V4,
}

impl Version {
    /// All, preferred first.
    pub const ALL: [Version; 4] = [Version::V4, Version::V3, Version::V2, Version::V1];

    /// As `X-Stream-Protocol-Version` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V1 => "channel.k8s.io",
            Version::V2 => "v2.channel.k8s.io",
            Version::V3 => "v3.channel.k8s.io",
            Version::V4 => "v4.channel.k8s.io",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Version::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Whether a terminal's size has a stream.
    pub fn has_resize(self) -> bool {
        self >= Version::V3
    }
}

/// What a stream is, as its `streamtype` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Error,
    Stdin,
    Stdout,
    Stderr,
    Resize,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Error, Kind::Stdin, Kind::Stdout, Kind::Stderr, Kind::Resize];

    pub const fn name(self) -> &'static str {
        match self {
            Kind::Error => "error",
            Kind::Stdin => "stdin",
            Kind::Stdout => "stdout",
            Kind::Stderr => "stderr",
            Kind::Resize => "resize",
        }
    }

    pub fn named(name: &[u8]) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// A terminal's size, in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// Bytes of a size that is not whole yet; one has some thirty.
const SIZE_MAX: usize = 1024;

impl Size {
    /// As the resize stream carries it.
    pub fn emit(self) -> String {
        format!("{{\"Width\":{},\"Height\":{}}}\n", self.columns, self.rows)
    }

    /// The last of the sizes in `said`, from which all that are whole are taken, and what is none.
    pub fn take(said: &mut Vec<u8>) -> Option<Self> {
        let mut values = serde_json::Deserializer::from_slice(said).into_iter::<serde_json::Value>();
        let mut last = None;
        let mut is_whole = true;
        for value in &mut values {
            let Ok(value) = value.inspect_err(|e| is_whole = !e.is_eof()) else { break };
            let number = |name| value.get(name)?.as_u64()?.try_into().ok();
            if let (Some(columns), Some(rows)) = (number("Width"), number("Height")) {
                last = Some(Size { columns, rows });
            }
        }
        let taken = if is_whole { said.len() } else { values.byte_offset() };
        said.drain(..taken);
        if said.len() > SIZE_MAX {
            said.clear();
        }
        last
    }
}
