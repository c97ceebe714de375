//! How a command ended, as `v4.channel.k8s.io` says it on the error stream: a `Status` of the Kubernetes API, in JSON.

use serde_json::{Value, json};

/// How a remote command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It ran, and exited with this code.
    Exit(u8),
    /// It could not be run, or nobody knows how it ended.
    Failed(String),
}

impl Outcome {
    /// As the server says it.
    pub fn emit(&self) -> String {
        let status = match self {
            Outcome::Exit(0) => json!({ "metadata": {}, "status": "Success" }),
            Outcome::Exit(code) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "reason": "NonZeroExitCode",
                "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
            }),
            Outcome::Failed(why) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {why}"),
                "reason": "InternalError",
                "details": { "causes": [{ "message": why }] },
                "code": 500,
            }),
        };
        status.to_string()
    }

    /// What a server said. Nothing at all is success: that is what protocols before v4 say.
    pub fn parse(said: &[u8]) -> Self {
        if said.is_empty() {
            return Outcome::Exit(0);
        }
        let Ok(status) = serde_json::from_slice::<Value>(said) else {
            return Outcome::Failed(format!("no status: {}", String::from_utf8_lossy(said)));
        };
        let message = status["message"].as_str().unwrap_or("no reason given").to_owned();
        match (status["status"].as_str(), status["reason"].as_str()) {
            (Some("Success"), _) => Outcome::Exit(0),
            (Some("Failure"), Some("NonZeroExitCode")) => {
                let causes = status["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
                let code = causes.iter().find(|cause| cause["reason"] == "ExitCode");
                match code.and_then(|cause| cause["message"].as_str()).and_then(|code| code.parse().ok()) {
                    Some(code) => Outcome::Exit(code),
                    None => Outcome::Failed(format!("no exit code: {message}")),
                }
            }
            _ => Outcome::Failed(message),
        }
    }
}
