//! Who a recorder says asked for a resource.

use serde_json::Value;

use crate::har::url::Url;

/// A recorded initiator whose URL is known.
#[derive(Clone, Debug)]
pub(crate) struct Initiator {
    pub url: Url,
    /// From 1.
    pub line: Option<u32>,
    pub by: By,
}

/// `_initiator_line`, from 1, and `_initiator_column`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub line: Option<f64>,
    pub column: Option<f64>,
}

/// What in the initiator asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// The recorder does not say.
    Unknown,
    /// A reference in markup or a style sheet.
    Parser,
    /// A running script.
    Script,
}

impl Initiator {
    /// Reads `_initiator` in its three forms: a URL (chrome-har, WebPageTest), an object (Chrome's own export), or
    /// that object as a string. `detail` is chrome-har's copy of the object; `line` counts from 1.
    pub fn read(
        initiator: Option<Value>,
        detail: Option<Value>,
        place: Place,
        kind: &str,
    ) -> Option<Initiator> {
        let line = place.line.filter(|l| (1.0..=u32::MAX as f64).contains(l)).map(|l| l as u32);
        // An element that a script made stands nowhere in the markup: Chrome then writes the very first place.
        let nowhere = place.column == Some(0.0) && place.line.is_some_and(|l| l <= 1.0);
        let (line, kind) = if nowhere { (None, "script") } else { (line, kind) };
        let found = initiator.and_then(|v| Self::from_value(v, line, kind));
        found.or_else(|| detail.and_then(|v| Self::from_value(v, line, kind)))
    }

    fn from_value(value: Value, line: Option<u32>, kind: &str) -> Option<Initiator> {
        match value {
            Value::String(s) if s.trim_start().starts_with('{') => {
                Self::from_object(&serde_json::from_str(&s).ok()?)
            }
            Value::String(s) => Some(Initiator { url: Url::parse(&s).ok()?, line, by: by(kind) }),
            Value::Object(_) => Self::from_object(&value),
            _ => None,
        }
    }

    /// The form of the DevTools protocol (`Network.Initiator`), whose lines count from 0.
    fn from_object(object: &Value) -> Option<Initiator> {
        let kind = object.get("type").and_then(Value::as_str).unwrap_or("");
        if let Some(url) = object.get("url").and_then(Value::as_str).and_then(|u| Url::parse(u).ok()) {
            let at = |name| object.get(name).and_then(Value::as_u64);
            if at("lineNumber") == Some(0) && at("columnNumber") == Some(0) {
                return Some(Initiator { url, line: None, by: By::Script });
            }
            return Some(Initiator { url, line: line_of(object), by: by(kind) });
        }
        // The innermost frame that has a URL; code that was made by `eval` has none. An asynchronous call's stack
        // goes on in `parent`.
        let mut stack = object.get("stack");
        while let Some(s) = stack {
            for frame in s.get("callFrames").and_then(Value::as_array).into_iter().flatten() {
                if let Some(url) = frame.get("url").and_then(Value::as_str).and_then(|u| Url::parse(u).ok()) {
                    return Some(Initiator { url, line: line_of(frame), by: By::Script });
                }
            }
            stack = s.get("parent");
        }
        None
    }
}

fn line_of(object: &Value) -> Option<u32> {
    let line = object.get("lineNumber").and_then(Value::as_u64)?;
    u32::try_from(line.saturating_add(1)).ok()
}

fn by(kind: &str) -> By {
    match kind {
        "parser" => By::Parser,
        "script" => By::Script,
        _ => By::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(initiator: Value) -> Option<(String, Option<u32>, By)> {
        let i = Initiator::read(Some(initiator), None, Place { line: Some(4.0), column: None }, "script")?;
        Some((i.url.to_string(), i.line, i.by))
    }

    #[test]
    fn an_initiator_is_a_url_an_object_or_that_object_as_a_string() {
        let doc = "http://a.example/";
        assert_eq!(read(json!(doc)), Some((doc.into(), Some(4), By::Script)));
        assert_eq!(read(json!("")), None);
        assert_eq!(read(json!({"type": "other"})), None);
        let parser = json!({"type": "parser", "url": doc, "lineNumber": 11});
        assert_eq!(read(parser.clone()), Some((doc.into(), Some(12), By::Parser)));
        assert_eq!(read(json!(parser.to_string())), Some((doc.into(), Some(12), By::Parser)));
        let script = json!({"type": "script", "stack": {
            "callFrames": [{"url": "", "lineNumber": 1}],
            "parent": {"callFrames": [{"url": "http://a.example/x.js", "lineNumber": 0}]}}});
        assert_eq!(read(script), Some(("http://a.example/x.js".into(), Some(1), By::Script)));
    }
}
