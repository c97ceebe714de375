//! Redirections: which resources stand for one another.

use page::{Cause, Kind, Page, ResourceId, ScriptMode};

/// The redirections of a page, as chains of resources. A resource that is no part of one is a chain of its own.
pub(crate) struct Chains {
    first: Vec<ResourceId>,
    last: Vec<ResourceId>,
}

impl Chains {
    pub(crate) fn new(page: &Page) -> Self {
        let mut first: Vec<ResourceId> = (0..page.resources.len() as ResourceId).collect();
        let mut last = first.clone();
        for (id, resource) in (0..).zip(&page.resources) {
            // Should a recording lead from one response to two, the first one goes on and the other begins anew.
            if let Cause::Redirect(parent) = resource.cause
                && last[parent as usize] == parent
            {
                last[parent as usize] = id;
                first[id as usize] = first[parent as usize];
            }
        }
        for id in (0..last.len()).rev() {
            last[id] = last[last[id] as usize];
        }
        Self { first, last }
    }

    /// The resource at which the redirections end that `id` begins or goes on with.
    pub(crate) fn last(&self, id: ResourceId) -> ResourceId {
        self.last[id as usize]
    }

    /// What made the loader ask for the first of the chain that `id` is in. A script whose beginning was not known to
    /// be one has nothing that tells whether the parser waits for it, and is taken to be asynchronous.
    pub(crate) fn place(&self, page: &Page, id: ResourceId) -> Cause {
        let first = &page.resources[self.first[id as usize] as usize];
        match first.cause {
            Cause::Parser { parent, offset, .. } if first.kind != Kind::Script => {
                Cause::Parser { parent, offset, script: ScriptMode::Async }
            }
            cause => cause,
        }
    }
}
