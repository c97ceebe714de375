//! Any bytes are a HAR or a clear refusal; what is taken keeps a page's invariants.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(pages) = page::har::parse_with_bodies(data, "fuzz") else { return };
    for (page, _) in pages {
        page.validate().expect("a page that was read is valid");
        page.resources.iter().for_each(|r| _ = page::cache::reuse(r, base::Duration::from_secs(86_400)));
    }
});
