//! Draws a run folder: `cargo run --release -p velodrome-report --example draw -- runs/mine` prints the page's path.

fn main() -> std::process::ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: draw RUN_FOLDER");
        return std::process::ExitCode::FAILURE;
    };
    match report::write(dir.as_ref()) {
        Ok(path) => println!("{}", path.display()),
        Err(e) => {
            eprintln!("{e}");
            return std::process::ExitCode::FAILURE;
        }
    }
    std::process::ExitCode::SUCCESS
}
