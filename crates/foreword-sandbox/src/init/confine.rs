//! Drops what the sandbox's user could do, for ever: capabilities, new privileges, being looked into, resources, system calls.

use rustix::{
    process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

use super::seccomp;
use crate::driver::protocol::{During, Fault, Limits, Step};

/// Queued signals, which timers need too: the usual 64 sandboxes together leave the host a third of what it has.
const MOST_PENDING_SIGNALS: u64 = 1024;

/// Confines this process and all that it will start.
pub(crate) fn confine(limits: &Limits) -> Result<(), Fault> {
    limit(limits).during(Step::DropPrivileges)?;
    drop_capabilities().during(Step::DropPrivileges)?;
    set_no_new_privs(true).during(Step::DropPrivileges)?;
    // The control socket, the memory and the program of this process are nobody's business: the sandbox's user could else open them
    // through /proc.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Step::DropPrivileges)?;
    seccomp::apply()
}

fn drop_capabilities() -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    empty_bounding_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// Takes away whatever a program could still bring.
pub(super) fn empty_bounding_set() -> rustix::io::Result<()> {
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) => remove_capability_from_bounding_set(capability)?,
            Ok(false) => {}
            // The kernel has no more.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn limit(limits: &Limits) -> rustix::io::Result<()> {
    let set = |resource, most: u64| {
        // What the server itself may not have cannot be given.
        let most = rustix::process::getrlimit(resource)
            .maximum
            .map_or(most, |maximum| most.min(maximum));
        setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )
    };
    set(Resource::Core, 0)?;
    set(Resource::Nice, 0)?;
    set(Resource::Rtprio, 0)?;
    // Both count against the user who started the server, the host's own programs included.
    set(Resource::Sigpending, MOST_PENDING_SIGNALS)?;
    set(Resource::Msgqueue, 0)?;
    set(Resource::Nofile, limits.open_files)?;
    if let Some(bytes) = limits.file_bytes {
        set(Resource::Fsize, bytes)?;
    }
    if let Some(processes) = limits.processes {
        set(Resource::Nproc, processes)?;
    }
    if let Some(bytes) = limits.data_bytes {
        set(Resource::Data, bytes)?;
    }
    Ok(())
}
