//! What a recording pushes.

use std::ops::Deref;

use base::{Fields, RequestHead};
use bytes::Bytes;
use page::{Cause, Kind, Page, Resource, ResourceId};

use super::Recording;
use crate::push::{PUSHES_MAX, PushRuleFault, push_priority};
use crate::{Answer, BadPushRule, Push, PushRules};

impl<P: Deref<Target = Page>> Recording<P> {
    /// Pushes by these rules, in place of what it pushed before. A rule is for every recorded GET of its path, on any host;
    /// what it pushes is the first recorded GET of that path on the same host.
    ///
    /// # Errors
    /// A rule that is for nothing that was recorded, or names what was not recorded on any host that it is for.
    pub fn with_pushes(mut self, rules: &PushRules) -> Result<Self, BadPushRule> {
        self.pushes.clear();
        for rule in rules.iter() {
            let all = (0..).zip(&self.page.resources);
            let causes: Vec<_> = all.filter(|(_, r)| r.method == "GET" && rule.is_for(&r.path)).collect();
            if causes.is_empty() {
                return Err(rule.bad(PushRuleFault::MatchesNothing));
            }
            for path in &rule.push {
                let mut any = false;
                for (cause, resource) in &causes {
                    if let Some(pushed) = self.get(resource.host, path.as_bytes()) {
                        any = true;
                        add(self.pushes.entry(*cause).or_default(), pushed, *cause, &self.page);
                    }
                }
                if !any {
                    return Err(rule.bad(PushRuleFault::Missing(path.clone())));
                }
            }
        }
        Ok(self)
    }

    /// Pushes with each document what the browser is sure to ask the same host for because of it, in the order in which it
    /// did when it was recorded, in place of what it pushed before: what the document's markup refers to, and what
    /// style sheets that it refers to do.
    ///
    /// Not pushed are what scripts asked for or inserted, frames, what was asked for after `onload`, and what was not
    /// answered with 200 to a GET; nor, in one go, more than [`PUSHES_MAX`].
    pub fn with_automatic_pushes(mut self) -> Self {
        self.pushes.clear();
        let page = &self.page;
        for (id, resource) in (0..).zip(&page.resources) {
            let pushable = resource.method == "GET"
                && resource.status == 200
                && resource.kind != Kind::Document
                && !resource.after_load;
            let Some(document) = document_of(page, resource).filter(|_| pushable) else { continue };
            let same_host = page.resources[document as usize].host == resource.host;
            if same_host && page.resources[document as usize].method == "GET" {
                add(self.pushes.entry(document).or_default(), id, document, page);
            }
        }
        self
    }

    /// The first recorded GET of a path.
    fn get(&self, host: u32, path: &[u8]) -> Option<ResourceId> {
        let first = self.entries.partition_point(|e| {
            let r = &self.page.resources[e.resource as usize];
            super::key(r) < (host, path, b"GET")
        });
        let id = self.entries.get(first)?.resource;
        (super::key(&self.page.resources[id as usize]) == (host, path, b"GET")).then_some(id)
    }

    /// What goes with the answer to `request`, which is for this resource.
    pub(super) fn pushes_with(&self, resource: ResourceId, request: &RequestHead) -> Vec<Push> {
        let push = |id: &ResourceId| {
            let pushed = &self.page.resources[*id as usize];
            let Answer { head, body, .. } = self.recorded(*id);
            Push {
                request: RequestHead {
                    method: Bytes::from_static(b"GET"),
                    path: pushed.path.clone(),
                    fields: Fields::new(),
                    ..request.clone()
                },
                head,
                body,
                priority: push_priority(pushed.kind),
            }
        };
        self.pushes.get(&resource).into_iter().flatten().map(push).collect()
    }
}

/// Adds a push to those that go with `cause`, once, and if there is room.
fn add(pushes: &mut Vec<ResourceId>, pushed: ResourceId, cause: ResourceId, page: &Page) {
    let path = |id: ResourceId| &page.resources[id as usize].path;
    let there = path(pushed) == path(cause) || pushes.iter().any(|p| path(*p) == path(pushed));
    if !there && pushes.len() < PUSHES_MAX {
        pushes.push(pushed);
    }
}

/// The document whose markup leads to a resource, by way of style sheets only.
pub(super) fn document_of(page: &Page, resource: &Resource) -> Option<ResourceId> {
    let mut resource = resource;
    loop {
        match resource.cause {
            Cause::Parser { parent, .. } => return (!resource.scripted).then_some(parent),
            Cause::Completion { parent, .. } => {
                resource = &page.resources[parent as usize];
                if resource.kind != Kind::Style {
                    return None;
                }
            }
            Cause::Root | Cause::Redirect(_) | Cause::Load { .. } | Cause::Beside => return None,
        }
    }
}
