//! How a command ended, as `channel.k8s.io` says it on the error stream: from version 4 on a `Status` of the Kubernetes API in
//! JSON, before that a sentence, or nothing if all went well.

use serde_json::{Value, json};

use crate::channel::Version;

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
    pub fn emit(&self, version: Version) -> String {
        let message = match self {
            Outcome::Exit(code) => format!("command terminated with non-zero exit code: exit status {code}"),
            Outcome::Failed(why) => format!("Internal error occurred: {why}"),
        };
        let status = match self {
            Outcome::Exit(0) if version < Version::V4 => return String::new(),
            _ if version < Version::V4 => return message,
            Outcome::Exit(0) => json!({ "metadata": {}, "status": "Success" }),
            Outcome::Exit(code) => json!({
                "metadata": {},
                "status": "Failure",
                "message": message,
                "reason": "NonZeroExitCode",
                "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
            }),
            Outcome::Failed(why) => json!({
                "metadata": {},
                "status": "Failure",
                "message": message,
                "reason": "InternalError",
                "details": { "causes": [{ "message": why }] },
                "code": 500,
            }),
        };
        status.to_string()
    }

    /// What a server said. client-go, too, takes nothing for success in every version.
    pub fn parse(said: &[u8], version: Version) -> Self {
        if said.is_empty() {
            return Outcome::Exit(0);
        }
        if version < Version::V4 {
            return Outcome::Failed(String::from_utf8_lossy(said).into_owned());
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
