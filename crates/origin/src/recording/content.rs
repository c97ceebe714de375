//! Real bytes for a recording: the bodies that were recorded, and fillers for the rest.

use std::collections::BTreeMap;
use std::ops::Deref;

use base::{BodyRange, Chunk, Field, Fields};
use bytes::BytesMut;
use page::har::Bodies;
use page::{Kind, Page, Resource, ResourceId};

use super::Recording;
use crate::filler::{self, Filler};

/// What the bodies of a page are made of.
pub(super) struct Content {
    bodies: Bodies,
    fillers: BTreeMap<ResourceId, Filler>,
}

impl Content {
    fn new(page: &Page, bodies: Bodies) -> Self {
        let absent = (0..).zip(&page.resources).filter(|(id, r)| r.body_len > 0 && !bodies.contains_key(id));
        let filler = |(id, resource): (ResourceId, &Resource)| {
            let media_type = resource.response.get_str("content-type").unwrap_or("");
            let filler = match resource.kind {
                Kind::Document => Filler::document(page, id),
                kind => Filler::new(kind, media_type, resource.body_len),
            };
            (id, filler)
        };
        let fillers = absent.map(filler).collect();
        Self { bodies, fillers }
    }

    /// The fields and the body that a resource is served with.
    pub fn answer(&self, id: ResourceId, recorded: &Resource) -> (Fields, Chunk) {
        let (fields, body) = match (self.bodies.get(&id), self.fillers.get(&id)) {
            (Some(body), _) => (body.response.clone(), Chunk::Bytes(body.bytes.clone())),
            (None, Some(filler)) => {
                let range = BodyRange { source: id, start: 0, len: filler.len() };
                (filler::fields(&recorded.response), range.into())
            }
            (None, None) => (filler::fields(&recorded.response), BodyRange::filler(0).into()),
        };
        let mut fields: Fields = fields.iter().filter(|f| !is_of_server(f)).cloned().collect();
        if !matches!(recorded.status, 204 | 304) {
            fields.push("Content-Length", body.len().to_string());
        }
        (fields, body)
    }
}

/// Whether a field speaks about the recorded server rather than about what it served: its length, which is replaced, and
/// how clients shall reach it another time, which would lead them away from the one that replays it.
fn is_of_server(field: &Field) -> bool {
    const OF_SERVER: [&str; 6] = [
        "content-length",
        "alt-svc",
        "alternate-protocol",
        "strict-transport-security",
        "public-key-pins",
        "public-key-pins-report-only",
    ];
    OF_SERVER.iter().any(|name| field.name.eq_ignore_ascii_case(name.as_bytes()))
}

impl<P: Deref<Target = Page>> Recording<P> {
    /// Answers with these bodies, and with a [`Filler`] wherever none was recorded: what a real client needs.
    ///
    /// The recorded bodies are given as bytes, fillers as ranges that [`read`](Self::read) makes bytes of.
    /// `Content-Length` is then the true one over every protocol, and fields that would lead a client elsewhere the next
    /// time (`Alt-Svc`, `Strict-Transport-Security` and the like) are left out.
    pub fn with_bodies(mut self, bodies: Bodies) -> Self {
        self.content = Some(Content::new(&self.page, bodies));
        self
    }

    /// Appends the bytes of a part of one of its bodies. Without [bodies](Self::with_bodies), and for sources that it does
    /// not know, they are filler text.
    pub fn read(&self, range: BodyRange, out: &mut BytesMut) {
        let BodyRange { source, start, len } = range;
        let end = start.saturating_add(len);
        let known = self.content.as_ref().and_then(|c| c.fillers.get(&source));
        match known {
            Some(filler) => filler.read(start..end, out),
            None => Filler::new(Kind::Other, "", end).read(start..end, out),
        }
    }
}
