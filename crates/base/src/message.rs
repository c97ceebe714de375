//! Request and response heads as the engines exchange them with what is above. Names are those of RFC 9110; an
//! engine maps them to its wire (HTTP/1.1's start line, SPDY's `:path`).

use bytes::Bytes;

/// One header field. Names compare without regard to case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The field's name, in the case in which it was recorded.
    pub name: Bytes,
    /// The field's value, without surrounding white space.
    pub value: Bytes,
}

/// Header fields in their order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Fields(Vec<Field>);

impl Fields {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field.
    pub fn push(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.0.push(Field { name: name.into(), value: value.into() });
    }

    /// The value of the first field called `name`.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.iter().find(|f| f.name.eq_ignore_ascii_case(name.as_bytes())).map(|f| &f.value)
    }

    /// The value of the first field called `name`, as text if it is UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|v| std::str::from_utf8(v).ok())
    }

    /// Removes every field called `name`.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|f| !f.name.eq_ignore_ascii_case(name.as_bytes()));
    }

    /// The fields in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.0.iter()
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Field> for Fields {
    fn from_iter<T: IntoIterator<Item = Field>>(fields: T) -> Self {
        Self(fields.into_iter().collect())
    }
}

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestHead {
    /// `GET`, `POST`, …
    pub method: Bytes,
    /// `http` or `https`.
    pub scheme: Bytes,
    /// Host, and port if it is not the scheme's own.
    pub authority: Bytes,
    /// Path and query, from the first `/`.
    pub path: Bytes,
    /// All other fields; no `Host`, and none that a connection owns (RFC 9110 §7.6.1).
    pub fields: Fields,
}

/// What a server answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResponseHead {
    /// The status code, 100–999.
    pub status: u16,
    /// The fields; none that a connection owns (RFC 9110 §7.6.1).
    pub fields: Fields,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_without_regard_to_case() {
        let mut fields = Fields::new();
        fields.push("Content-Type", "text/html");
        fields.push("X", "1");
        fields.push("x", "2");
        assert_eq!(fields.get_str("content-type"), Some("text/html"));
        fields.remove("X");
        assert_eq!(fields.len(), 1);
    }
}
