//! The settings of sandboxes. Defaults are what an operator gets who sets nothing.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sandboxes' settings (`[sandbox]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Where commands run.
    pub backend: BackendName,
    /// What commands reach of the network.
    pub network: Network,
    /// How long a sandbox may be without a call before it is stopped, in seconds; its files stay.
    pub idle_timeout_seconds: u64,
    /// How many sandboxes run at a time; one more stops the one that was idle longest.
    pub max_running: usize,
    /// The longest that a command may ask to run, in seconds.
    pub command_timeout_max_seconds: u64,
    /// Memory of one sandbox, in bytes, with all that lies in its `/tmp`; there is no swap.
    pub memory_bytes: u64,
    /// Processor time of one sandbox, in percent of one processor.
    pub cpu_percent: u64,
    /// Processes and threads of one sandbox.
    pub max_processes: u64,
    /// Files that one process may have open.
    pub max_open_files: u64,
    /// Size of `/tmp`, in bytes; what is in it counts as memory, of which it is at most half.
    pub tmp_bytes: u64,
    /// What home and outputs of one chat may hold together, in bytes; 0 is without limit.
    pub workspace_quota_bytes: u64,
    /// What has to stay free on the disk of the workspaces, in bytes; a command that goes below is ended.
    pub min_free_bytes: u64,
    /// The user and group, by number, that own a sandbox's files outside of it. Used when the server runs as root, never root.
    pub host_uid: u32,
    /// A directory with the root file system that commands see; unset: this host's `/usr`.
    pub rootfs: Option<PathBuf>,
    /// Containers, if the backend is `docker`.
    pub docker: DockerConfig,
}

/// The settings of containers (`[sandbox.docker]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DockerConfig {
    /// The image that sandboxes are made of; it has to have bash. One that is not there is pulled.
    pub image: String,
    /// The engine: `unix:///run/docker.sock` or `tcp://host:2376`; unset: the usual socket of Docker on this machine.
    pub host: Option<String>,
    /// A directory with `ca.pem`, `cert.pem` and `key.pem`, for an engine that is reached by TLS.
    pub cert_path: Option<PathBuf>,
    /// How files get into containers and out.
    pub files: ContainerFiles,
    /// Where the engine's host has this server's data directory, if that is another path than here, as for a server in a container.
    pub host_data_dir: Option<PathBuf>,
    /// A static `foreword` for Linux that is put into containers; unset: this very program, which is right on Linux.
    pub program: Option<PathBuf>,
}

impl DockerConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |setting, value: &str, reason| {
            Err(ConfigError {
                setting,
                value: value.to_owned(),
                reason,
            })
        };
        if self.image.trim().is_empty() {
            return refuse("docker.image", &self.image, "it names an image");
        }
        let schemes = ["unix://", "tcp://", "http://", "npipe://"];
        if let Some(host) = &self.host
            && !schemes.iter().any(|scheme| host.starts_with(scheme))
        {
            return refuse(
                "docker.host",
                host,
                "it starts with `unix://` or `tcp://`; forward a socket that is reached by ssh",
            );
        }
        if let Some(there) = &self.host_data_dir
            && !there.is_absolute()
        {
            return refuse(
                "docker.host_data_dir",
                &there.display().to_string(),
                "it is an absolute path",
            );
        }
        Ok(())
    }
}

/// The user and group in containers.
pub const CONTAINER_UID: u32 = 1000;

impl Default for DockerConfig {
    fn default() -> Self {
        Self {
            image: "python:3.13-slim-bookworm".to_owned(),
            host: None,
            cert_path: None,
            files: ContainerFiles::default(),
            host_data_dir: None,
            program: None,
        }
    }
}

/// How files get into containers and out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContainerFiles {
    /// As binds if a container sees this server's files, else as volumes.
    #[default]
    Auto,
    /// Containers see the directories of this server.
    Binds,
    /// Containers have volumes; uploads and outputs are carried in and out.
    Volumes,
}

/// A thousand processors.
const MOST_CPU_PERCENT: u64 = 100_000;

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            backend: BackendName::default(),
            network: Network::default(),
            idle_timeout_seconds: 600,
            max_running: 64,
            command_timeout_max_seconds: 600,
            memory_bytes: 2 << 30,
            cpu_percent: 100,
            max_processes: 512,
            max_open_files: 4096,
            tmp_bytes: 1 << 30,
            workspace_quota_bytes: 10 << 30,
            min_free_bytes: 1 << 30,
            host_uid: 64000,
            rootfs: None,
            docker: DockerConfig::default(),
        }
    }
}

/// Where commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    /// The best that works here, else none.
    #[default]
    Auto,
    /// Linux namespaces on this host.
    Namespace,
    /// Containers.
    Docker,
    /// Nowhere: prompts only.
    None,
}

/// What commands reach of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Their own loopback only.
    #[default]
    None,
    /// Everything that this host reaches, this server and abstract sockets included.
    Host,
}

/// Settings that no sandbox can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`sandbox.{setting}` cannot be `{value}`: {reason}")]
pub struct ConfigError {
    /// The setting's name within the section.
    pub setting: &'static str,
    /// Its value.
    pub value: String,
    /// What is wrong and what is right.
    pub reason: &'static str,
}

impl SandboxConfig {
    /// The user and group, by number, that sandboxes' files have to belong to where the server runs as root.
    #[must_use]
    pub fn files_owner(&self) -> u32 {
        if self.backend == BackendName::Docker {
            CONTAINER_UID
        } else {
            self.host_uid
        }
    }

    /// Checks the settings as a whole.
    pub fn check(&self) -> Result<(), ConfigError> {
        let least: [(&'static str, u64, u64, &'static str); 7] = [
            (
                "idle_timeout_seconds",
                self.idle_timeout_seconds,
                1,
                "it is at least 1",
            ),
            (
                "max_running",
                self.max_running as u64,
                1,
                "it is at least 1",
            ),
            (
                "command_timeout_max_seconds",
                self.command_timeout_max_seconds,
                1,
                "it is at least 1",
            ),
            (
                "memory_bytes",
                self.memory_bytes,
                16 << 20,
                "bash alone needs 16777216 (16 MiB)",
            ),
            ("max_processes", self.max_processes, 8, "it is at least 8"),
            (
                "max_open_files",
                self.max_open_files,
                64,
                "it is at least 64",
            ),
            (
                "tmp_bytes",
                self.tmp_bytes,
                1 << 20,
                "it is at least 1048576 (1 MiB)",
            ),
        ];
        if let Some((setting, value, _, reason)) =
            least.into_iter().find(|(_, value, least, _)| value < least)
        {
            return Err(ConfigError {
                setting,
                value: value.to_string(),
                reason,
            });
        }
        if !(1..=MOST_CPU_PERCENT).contains(&self.cpu_percent) {
            return Err(ConfigError {
                setting: "cpu_percent",
                value: self.cpu_percent.to_string(),
                reason: "it is between 1 and 100000",
            });
        }
        if self.host_uid == 0 || self.host_uid == u32::MAX {
            return Err(ConfigError {
                setting: "host_uid",
                value: self.host_uid.to_string(),
                reason: "files of a sandbox must not belong to root; choose a number that no user has",
            });
        }
        if self.backend == BackendName::Docker {
            self.docker.check()?;
        }
        if let Some(rootfs) = &self.rootfs
            && !rootfs.is_absolute()
        {
            return Err(ConfigError {
                setting: "rootfs",
                value: rootfs.display().to_string(),
                reason: "it is an absolute path",
            });
        }
        Ok(())
    }

    /// Size of `/tmp`, in bytes. What is in it counts as memory: if it could take all, no command could run that empties it.
    #[must_use]
    pub fn tmp_in_force(&self) -> u64 {
        self.tmp_bytes.min(self.memory_bytes / 2)
    }

    /// How long a sandbox may be without a call.
    #[must_use]
    pub fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_seconds)
    }

    /// The longest that a command may ask to run.
    #[must_use]
    pub fn command_timeout_max(&self) -> Duration {
        Duration::from_secs(self.command_timeout_max_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_served() {
        SandboxConfig::default().check().unwrap();
    }

    #[test]
    fn root_never_owns_the_files_of_a_sandbox() {
        let config = SandboxConfig {
            host_uid: 0,
            ..SandboxConfig::default()
        };
        assert_eq!(
            config.check().unwrap_err().to_string(),
            "`sandbox.host_uid` cannot be `0`: files of a sandbox must not belong to root; choose a number that no user has"
        );
    }

    #[test]
    fn a_limit_that_stops_everything_is_refused() {
        let config = SandboxConfig {
            max_processes: 1,
            ..SandboxConfig::default()
        };
        assert_eq!(config.check().unwrap_err().setting, "max_processes");
        let config = SandboxConfig {
            cpu_percent: 0,
            ..SandboxConfig::default()
        };
        assert_eq!(config.check().unwrap_err().setting, "cpu_percent");
    }
}
