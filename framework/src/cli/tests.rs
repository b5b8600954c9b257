use super::*;

fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
    Options::try_parse_from(std::iter::once("operator").chain(arguments.iter().copied()))
}

#[test]
fn addresses_are_written_as_controller_runtime_writes_them() {
    let options = parse(&["--health-probe-bind-address", ":9090", "--metrics-bind-address=0"]);
    let options = options.unwrap();
    assert_eq!(
        options.health_probe_bind_address,
        Some(Switch::At("0.0.0.0:9090".parse().unwrap()))
    );
    assert_eq!(options.metrics_bind_address, Some(Switch::Off));
    assert!(parse(&["--metrics-bind-address", "nowhere"]).is_err());
}

#[test]
fn leader_elect_is_a_switch_with_an_optional_value() {
    assert_eq!(parse(&[]).unwrap().leader_elect, None);
    assert_eq!(parse(&["--leader-elect"]).unwrap().leader_elect, Some(true));
    assert_eq!(parse(&["--leader-elect=false"]).unwrap().leader_elect, Some(false));
    assert_eq!(parse(&["--leader-elect", "run"]).unwrap().leader_elect, Some(true));
}

#[test]
fn flags_are_understood_before_and_after_the_command() {
    for arguments in [["manifests", "--leader-elect"], ["--leader-elect", "manifests"]] {
        let options = parse(&arguments).unwrap();
        assert!(matches!(options.command, Some(Command::Manifests(_))));
        assert_eq!(options.leader_elect, Some(true));
    }
}

#[test]
fn the_flags_of_zap_still_work() {
    let options = parse(&["--zap-log-level=debug", "--zap-encoder=json"]).unwrap();
    assert_eq!(options.log_level, Some(tracing::Level::DEBUG));
    assert_eq!(options.log_format, options::LogFormat::Json);
}

#[test]
fn flags_win_over_the_program() {
    let manager = || Manager::new(Client::offline()).leader_election("ops");
    let apply = |arguments: &[&str]| parse(arguments).unwrap().apply(manager());
    assert!(apply(&["--leader-elect=false"]).election.is_none());
    assert_eq!(apply(&["--leader-elect"]).election.unwrap().name, "ops");
    assert_eq!(apply(&["--watch-namespace=a, b,"]).namespaces, ["a", "b"]);
}
