//! The main thread: one task at a time, in the order in which they came.

use std::collections::VecDeque;

use base::{Duration, Instant};
use page::{Cause, ResourceId};

use crate::Loader;

/// Something that takes the main thread's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// Parse the stretch of a document that has arrived.
    Parse(ResourceId),
    /// Run a script, apply a style sheet.
    Use(ResourceId),
    /// The page's closing computation, before `onload`.
    Close,
}

struct Running {
    task: Task,
    until: Instant,
    /// For a parsing task: the offset that it reaches.
    parsed_to: u64,
}

#[derive(Default)]
pub(crate) struct MainThread {
    waiting: VecDeque<Task>,
    running: Option<Running>,
}

impl MainThread {
    pub(crate) fn enqueue(&mut self, task: Task) {
        self.waiting.push_back(task);
    }

    pub(crate) fn has(&self, task: Task) -> bool {
        self.waiting.contains(&task) || self.running.as_ref().is_some_and(|r| r.task == task)
    }

    pub(crate) fn busy_until(&self) -> Option<Instant> {
        self.running.as_ref().map(|r| r.until)
    }
}

impl Loader<'_> {
    /// Runs the main thread up to `now`, and notes the moments that are reached whenever it is free.
    pub(crate) fn run(&mut self, now: Instant) {
        loop {
            if let Some(running) = self.main_thread.running.take_if(|r| r.until <= now) {
                self.finish(now, running);
            }
            if self.main_thread.running.is_some() {
                return;
            }
            if self.moments.first_paint.is_none() && self.can_paint() {
                self.moments.first_paint = Some(now);
            }
            match self.main_thread.waiting.pop_front() {
                Some(task) => self.begin(now, task),
                None if !self.note_end(now) => return,
                None => {}
            }
        }
    }

    fn begin(&mut self, now: Instant, task: Task) {
        let (cost, parsed_to) = match task {
            Task::Parse(id) => {
                let (to, share) = self.begin_parse(id);
                (self.page.resources[id as usize].exec.mul_f64(share), to)
            }
            Task::Use(id) => (self.page.resources[id as usize].exec, 0),
            Task::Close => (self.page.tail, 0),
        };
        let cost: Duration = self.scaled(cost);
        self.computed += cost;
        self.main_thread.running = Some(Running { task, until: now + cost, parsed_to });
    }

    fn finish(&mut self, now: Instant, running: Running) {
        match running.task {
            Task::Parse(id) => self.finish_parse(now, id, running.parsed_to),
            Task::Use(id) => self.finish_use(now, id),
            Task::Close => {
                self.moments.load = Some(now);
                for (id, resource) in (0..).zip(&self.page.resources) {
                    if let Cause::Load { delay } = resource.cause {
                        self.delayed.insert((now + self.scaled(delay), id));
                    }
                }
            }
        }
    }

    /// The main thread is free. Is the page loaded, is everything over? True if that gave it something to do.
    fn note_end(&mut self, now: Instant) -> bool {
        if self.before_load == 0 && !self.closing {
            self.closing = true;
            self.main_thread.enqueue(Task::Close);
            return true;
        }
        if self.moments.load.is_some() && self.after_load == 0 && self.moments.finished.is_none() {
            self.moments.finished = Some(now);
        }
        false
    }
}
