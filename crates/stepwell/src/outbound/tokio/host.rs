/// The machine's name, as far as it can be told without a system call.
pub(crate) fn host_name() -> String {
    let from_file = || std::fs::read_to_string("/etc/hostname").ok();
    let name = std::env::var("HOSTNAME").ok().or_else(from_file).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).take(60).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}
