//! Tells the program what it was built from. None of it is needed: a source archive has no commit.

use std::process::Command;

fn main() {
    let say = |name: &str, value: Option<String>| {
        println!("cargo::rustc-env=VELODROME_{name}={}", value.unwrap_or_default());
    };
    say("COMMIT", output("git", &["rev-parse", "--short=12", "HEAD"]));
    say("RUSTC", output(&std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()), &["--version"]));
    say("TARGET", std::env::var("TARGET").ok());
    println!("cargo::rerun-if-changed=build.rs");
    // A path that is not there would make every build a new one.
    for name in ["HEAD", "logs/HEAD"] {
        let path = output("git", &["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|p| std::path::Path::new(p).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
