//! Detects virtual machines and containers: the hypervisor and the container manager.

use crate::files::{SystemFiles, field};

/// The hypervisor and the container that this process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virtualization {
    /// Whether the machine has a hypervisor. A container alone has none.
    pub hypervisor: bool,
    /// Names of the hypervisor and of the container manager; `None` if neither is known.
    pub names: Option<String>,
}

/// Detects the hypervisor and the container manager from the files that each leaves.
pub fn detect(files: &SystemFiles, cpuinfo: &str) -> Virtualization {
    let name = hypervisor(files);
    let flag = field(cpuinfo, "flags").map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    // Cloud providers put their name into the DMI of bare-metal machines too, so on x86 the processor's hypervisor flag
    // decides.
    let hypervisor = flag.unwrap_or(name.is_some()) || files.exists("/sys/hypervisor/type");
    let names: Vec<&str> = name.filter(|_| hypervisor).into_iter().chain(container(files)).collect();
    Virtualization { hypervisor, names: (!names.is_empty()).then(|| names.join(", ")) }
}

fn hypervisor(files: &SystemFiles) -> Option<&'static str> {
    // Laptops and bare-metal cloud machines may have a hypervisor's vendor too, so the product name decides.
    let product = files.line("/sys/class/dmi/id/product_name").unwrap_or_default();
    let metal = product.ends_with(".metal") || product.starts_with("Surface") || product.starts_with("MacBook");
    include_str!("hypervisors.txt").lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let (path, rest) = line.split_once(' ')?;
        let (word, name) = rest.split_once(' ')?;
        let found = || files.text(path).is_some_and(|text| text.to_ascii_lowercase().contains(word));
        (!(metal && path.contains("dmi")) && found()).then_some(name)
    })
}

fn container(files: &SystemFiles) -> Option<&'static str> {
    const MARKS: [(&str, &str); 3] =
        [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman"), ("/var/run/secrets/kubernetes.io", "Kubernetes")];
    if let Some((_, name)) = MARKS.iter().find(|(path, _)| files.exists(path)) {
        return Some(name);
    }
    // systemd writes the container's name where every user can read it. Only root can read the environment of the first
    // process.
    let named = files.line("/run/systemd/container").or_else(|| {
        let environ = files.text("/proc/1/environ")?;
        environ.split('\0').find_map(|entry| entry.strip_prefix("container=")).map(str::to_owned)
    })?;
    Some(match named.as_str() {
        "lxc" | "lxc-libvirt" => "LXC",
        "docker" => "Docker",
        "podman" => "Podman",
        "systemd-nspawn" => "systemd-nspawn",
        _ => "a container",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::sample::Tree;

    const VIRTUAL: &str = "flags\t\t: fpu sse2 hypervisor avx\n";
    const METAL: &str = "flags\t\t: fpu sse2 avx\n";
    const ARM: &str = "Features\t: fp asimd\n";

    fn found(cpuinfo: &str, contents: &[(&str, &str)]) -> (bool, Option<String>) {
        let Virtualization { hypervisor, names } = detect(&Tree::new(contents).files, cpuinfo);
        (hypervisor, names)
    }

    #[test]
    fn the_processor_flag_distinguishes_virtual_machines_from_bare_metal() {
        assert_eq!(found(VIRTUAL, &[]), (true, None));
        assert_eq!(found(METAL, &[]), (false, None));
        assert_eq!(found("", &[]), (false, None));
        let ec2 = ("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(found(VIRTUAL, &[ec2]), (true, Some("Amazon EC2".to_owned())));
        assert_eq!(found(METAL, &[ec2]), (false, None));
    }

    #[test]
    fn the_vendor_reveals_a_virtual_machine_without_the_processor_flag() {
        let ec2 = ("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(found(ARM, &[ec2]), (true, Some("Amazon EC2".to_owned())));
        assert_eq!(found(ARM, &[ec2, ("/sys/class/dmi/id/product_name", "m7g.metal\n")]), (false, None));
    }

    #[test]
    fn containers_are_named_beside_the_hypervisor() {
        let clock = ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock \n");
        assert_eq!(found(VIRTUAL, &[clock, ("/.dockerenv", "")]), (true, Some("KVM, Docker".to_owned())));
        assert_eq!(found(METAL, &[("/run/.containerenv", "")]), (false, Some("Podman".to_owned())));
        assert_eq!(found(METAL, &[("/proc/1/environ", "A=1\0container=lxc\0B=2")]), (false, Some("LXC".to_owned())));
    }
}
