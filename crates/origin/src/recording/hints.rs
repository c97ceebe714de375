//! What a recording hints at: see [`page::hint`].

use std::collections::BTreeMap;
use std::ops::Deref;

use base::{Duration, RequestHead};
use bytes::Bytes;
use page::cache::{Reuse, reuse};
use page::hint::Form;
use page::{Kind, Page, ResourceId};

use super::Recording;
use super::pushes::document_of;
use crate::Answer;
use crate::push::PUSHES_MAX;

/// "The server must not use X-Subresource headers for resources which are not cacheable, or whose lifetime might expire before the end
/// of the current page load" ("X-Subresources", chromium.org): no load here is given longer unless asked for.
const LIFETIME_MIN: Duration = Duration::from_secs(300);

/// The fields that go with documents' answers.
pub(super) struct Hints {
    form: Form,
    values: BTreeMap<ResourceId, Bytes>,
}

impl<P: Deref<Target = Page>> Recording<P> {
    /// Hints, in the head of each document's answer, at what its markup refers to and what style sheets that it refers to do, in the
    /// order in which it was recorded, as far as it is static (caches may keep it for five minutes); so a server can know it. `uri` says
    /// how the document (the first) names one of them (the second), or that it is not to be hinted at.
    ///
    /// Not hinted at are what scripts asked for or inserted, frames, what was asked for after `onload`, and what was not answered with
    /// 200 to a GET; nor, with one document, more than [`PUSHES_MAX`] or than [the field](page::hint::VALUE_BYTES_MAX) holds. A client
    /// that has to ask for hints and has not gets none.
    pub fn with_hints(
        mut self,
        form: Form,
        uri: impl Fn(&Page, ResourceId, ResourceId) -> Option<String>,
    ) -> Self {
        let page = &self.page;
        let mut named: BTreeMap<ResourceId, Vec<(String, Kind)>> = BTreeMap::new();
        for (id, resource) in (0..).zip(&page.resources) {
            let hintable = resource.method == "GET"
                && resource.status == 200
                && resource.kind != Kind::Document
                && !resource.after_load
                && reuse(resource, LIFETIME_MIN) == Reuse::Fresh;
            let Some(document) = document_of(page, resource).filter(|_| hintable) else { continue };
            let Some(uri) = uri(page, document, id) else { continue };
            let named = named.entry(document).or_default();
            if named.len() < PUSHES_MAX && named.iter().all(|(other, _)| *other != uri) {
                named.push((uri, resource.kind));
            }
        }
        let value = |(document, named): (ResourceId, Vec<(String, Kind)>)| {
            Some((document, form.emit(named.iter().map(|(uri, kind)| (&uri[..], *kind)))?))
        };
        self.hints = Some(Hints { form, values: named.into_iter().filter_map(value).collect() });
        self
    }

    /// Puts what there is to be hinted at into a document's answer. One that has not changed (304) has the same hints.
    pub(super) fn hint(&self, resource: ResourceId, request: &RequestHead, answer: &mut Answer) {
        let Some(Hints { form, values }) = &self.hints else { return };
        let wanted = request.method == "GET" && form.is_wanted(&request.fields);
        if let Some(value) =
            values.get(&resource).filter(|_| wanted && matches!(answer.head.status, 200 | 304))
        {
            answer.head.fields.push(form.field_name(), value.clone());
        }
    }
}
