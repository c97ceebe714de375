//! A HAR as recorders write it: every field may be missing, null, or of a neighbouring type.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

#[derive(serde::Deserialize)]
pub(crate) struct File {
    pub log: Option<Log>,
}

#[derive(serde::Deserialize)]
pub(crate) struct Log {
    pub creator: Option<Program>,
    pub browser: Option<Program>,
    pub pages: Option<Vec<PageRecord>>,
    pub entries: Option<Vec<Entry>>,
}

#[derive(serde::Deserialize)]
pub(crate) struct Program {
    #[serde(default)]
    pub name: Text,
    #[serde(default)]
    pub version: Text,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(crate) struct PageRecord {
    pub id: Text,
    pub title: Text,
    pub started_date_time: Text,
    pub page_timings: Option<PageTimings>,
    /// WebPageTest.
    #[serde(rename = "_domContentLoadedEventStart")]
    pub dom_content_loaded: Number,
    /// WebPageTest: 1 for a repeat view.
    #[serde(rename = "_cached")]
    pub cached: Number,
    #[serde(rename = "_firstPaint")]
    pub first_paint: Number,
    #[serde(rename = "_velodrome")]
    pub velodrome: Option<Value>,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PageTimings {
    pub on_content_load: Number,
    pub on_load: Number,
    #[serde(rename = "_firstPaint")]
    pub first_paint: Number,
    #[serde(rename = "_firstContentfulPaint")]
    pub first_contentful_paint: Number,
    /// WebPageTest.
    #[serde(rename = "_startRender")]
    pub start_render: Number,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Entry {
    pub pageref: Text,
    pub started_date_time: Text,
    pub time: Number,
    pub request: Option<Request>,
    pub response: Option<Response>,
    pub timings: Option<Timings>,
    #[serde(rename = "serverIPAddress")]
    pub server_ip_address: Text,
    pub connection: Text,
    #[serde(rename = "_initiator")]
    pub initiator: Option<Value>,
    #[serde(rename = "_initiator_detail")]
    pub initiator_detail: Option<Value>,
    #[serde(rename = "_initiator_line")]
    pub initiator_line: Number,
    #[serde(rename = "_initiator_column")]
    pub initiator_column: Number,
    #[serde(rename = "_initiator_type")]
    pub initiator_type: Text,
    #[serde(rename = "_priority")]
    pub priority: Text,
    #[serde(rename = "_initialPriority")]
    pub initial_priority: Text,
    #[serde(rename = "_resourceType")]
    pub resource_type: Text,
    #[serde(rename = "_renderBlocking")]
    pub render_blocking: Text,
    // WebPageTest: milliseconds since the page's start, and a socket's number.
    #[serde(rename = "_created")]
    pub created: Number,
    #[serde(rename = "_load_start")]
    pub load_start: Number,
    #[serde(rename = "_dns_start")]
    pub dns_start: Number,
    #[serde(rename = "_dns_end")]
    pub dns_end: Number,
    #[serde(rename = "_connect_start")]
    pub connect_start: Number,
    #[serde(rename = "_connect_end")]
    pub connect_end: Number,
    #[serde(rename = "_ssl_end")]
    pub ssl_end: Number,
    #[serde(rename = "_socket")]
    pub socket: Text,
    #[serde(rename = "_velodrome")]
    pub velodrome: Option<Value>,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Request {
    pub method: Text,
    pub url: Text,
    pub http_version: Text,
    pub headers: Option<Vec<Header>>,
    pub body_size: Number,
    pub post_data: Option<PostData>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
pub(crate) struct PostData {
    pub text: Text,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Response {
    pub status: Number,
    pub headers: Option<Vec<Header>>,
    pub content: Option<Content>,
    #[serde(rename = "redirectURL")]
    pub redirect_url: Text,
    pub headers_size: Number,
    pub body_size: Number,
    #[serde(rename = "_transferSize")]
    pub transfer_size: Number,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Content {
    pub size: Number,
    pub compression: Number,
    pub mime_type: Text,
    pub text: Text,
    pub encoding: Text,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
pub(crate) struct Header {
    pub name: Text,
    pub value: Text,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
pub(crate) struct Timings {
    pub blocked: Number,
    pub dns: Number,
    pub connect: Number,
    pub send: Number,
    pub wait: Number,
    pub receive: Number,
    pub ssl: Number,
    /// chrome-har: from the moment the browser asked until `startedDateTime`.
    #[serde(rename = "_queued")]
    pub queued: Number,
}

/// A number, or a string that spells one.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) enum Number {
    /// Missing, null or an empty string.
    #[default]
    Absent,
    Is(f64),
    /// Something else: an error where the number is used, and nowhere else.
    Not(String),
}

impl Number {
    /// The number, if it is one.
    pub fn get(&self) -> Option<f64> {
        match self {
            Number::Is(n) => Some(*n),
            Number::Absent | Number::Not(_) => None,
        }
    }
}

/// A string, or a scalar that is written as one; empty for anything else.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Text(pub String);

impl std::ops::Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }
    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number::Absent)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Number, E> {
        Ok(Number::Not(v.to_string()))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Number, E> {
        Ok(Number::Is(v as f64))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Number, E> {
        Ok(Number::Is(v as f64))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Number, E> {
        Ok(Number::Is(v))
    }
    fn visit_str<E>(self, v: &str) -> Result<Number, E> {
        let v = v.trim();
        Ok(match v.parse::<f64>() {
            _ if v.is_empty() => Number::Absent,
            Ok(n) if n.is_finite() => Number::Is(n),
            _ => Number::Not(format!("{:?}", crate::har::shortened(v, 40))),
        })
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Number, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Number::Not("an array".into()))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Number::Not("an object".into()))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Number, D::Error> {
        d.deserialize_any(NumberVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }
    fn visit_bool<E>(self, v: bool) -> Result<Text, E> {
        Ok(Text(v.to_string()))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Text, E> {
        Ok(Text(v.to_string()))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Text, E> {
        Ok(Text(v.to_string()))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Text, E> {
        Ok(Text(v.to_string()))
    }
    fn visit_str<E>(self, v: &str) -> Result<Text, E> {
        Ok(Text(v.to_owned()))
    }
    fn visit_string<E>(self, v: String) -> Result<Text, E> {
        Ok(Text(v))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Text, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Text, D::Error> {
        d.deserialize_any(TextVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_be_missing_null_or_of_a_neighbouring_type() {
        let entry: Entry = serde_json::from_str(
            r#"{"time": "12.5", "startedDateTime": null, "connection": 7, "request": null,
                "response": {"status": "200", "bodySize": "", "headersSize": [1], "content": null},
                "timings": {"wait": null, "dns": {"a": 1}, "send": true}, "unknown": {"deep": [1, 2]}}"#,
        )
        .unwrap();
        assert_eq!(entry.time, Number::Is(12.5));
        assert_eq!(&*entry.connection, "7");
        assert!(entry.request.is_none());
        let response = entry.response.unwrap();
        assert_eq!((response.status, response.body_size), (Number::Is(200.0), Number::Absent));
        assert_eq!(response.headers_size, Number::Not("an array".into()));
        let timings = entry.timings.unwrap();
        assert_eq!(timings.wait, Number::Absent);
        assert_eq!(timings.dns, Number::Not("an object".into()));
        assert_eq!(timings.send, Number::Not("true".into()));
    }
}
