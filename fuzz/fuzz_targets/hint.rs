//! Any bytes of a field name what can be asked for, or nothing, and in bounded time.
#![no_main]

use page::hint::{Form, TARGETS_MAX};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for form in [Form::Subresources, Form::Preload] {
        let mut fields = base::Fields::new();
        fields.push(form.field_name(), data.to_vec());
        let targets = form.parse(&fields, "https://a.example/dir/page?q");
        assert!(targets.len() <= TARGETS_MAX);
        for target in targets {
            assert!(target.path.starts_with('/') && target.path.bytes().all(|b| b.is_ascii_graphic()));
            assert!(!target.authority.is_empty() && !target.authority.contains('/'));
        }
    }
});
