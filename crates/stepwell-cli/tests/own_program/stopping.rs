//! `worker`, and what happens to commands that are told to stop.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::{BEGIN, Place, parse};

/// A process whose lines are read while it works.
struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Process {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut child = place.command(args).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let begins = lines.by_ref().any(|line| line.expect("it is text") == BEGIN);
        assert!(begins, "the program has begun");
        Self { child, lines }
    }

    fn record(&mut self) -> Value {
        parse(&self.lines.next().expect("it has not ended").expect("it is text"))
    }

    fn terminate(&self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(told.expect("it is told").success());
    }

    fn exit_code(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

#[test]
fn a_worker_executes_runs_until_it_is_told_to_stop() {
    let place = Place::new();
    place.call(&["start", "greet", "--id", "ada", "--input", "\"Ada\""]).success();
    let mut worker = Process::start(&place, &["worker", "--json"]);
    let ready = worker.record();
    assert_eq!(ready["workflows"], json!(["approval", "declined", "double", "greet", "patient"]));
    assert!(ready["worker"].as_str().is_some_and(|id| id.starts_with("shop-")), "{ready}");
    // Others wait for what the worker does.
    let (assert, ends) =
        place.records(&["start", "greet", "--id", "ada", "--input", "\"Ada\"", "--wait"]);
    assert.success();
    assert_eq!(ends.last().expect("it has ended")["output"], "Hello, ADA!");
    place.call(&["start", "approval", "--id", "a"]).success();
    place.call(&["signal", "bakery/a", "approved", "\"by Grace\""]).success();
    let (assert, ends) = place.records(&["start", "approval", "--id", "a", "--wait"]);
    assert.success();
    assert_eq!(ends.last().expect("it has ended")["output"], "by Grace");
    worker.terminate();
    let stopped = worker.record();
    assert_eq!((&stopped["record"], &stopped["worker"]), (&json!("stopped"), &ready["worker"]));
    assert_eq!(worker.exit_code(), Some(0));
}

#[test]
fn a_resume_that_is_told_to_stop_hands_the_run_back() {
    let place = Place::new();
    place.call(&["start", "approval", "--id", "a"]).success();
    let resume = Process::start(&place, &["resume", "bakery/a", "--json"]);
    wait_until(&place, |shown| shown["waits"].as_array().is_some_and(|waits| !waits.is_empty()));
    resume.terminate();
    assert_eq!(resume.exit_code(), Some(1));
    place.call(&["signal", "bakery/a", "approved", "\"by Grace\""]).success();
    assert_eq!(place.record(&["resume", "bakery/a"])["output"], "by Grace");
}

#[test]
fn a_resume_that_is_told_to_stop_lets_the_step_end_and_says_how_the_run_did() {
    let place = Place::new();
    let file = format!("{}.go", place.store);
    let input = serde_json::to_string(&file).expect("a text is JSON");
    place.call(&["start", "patient", "--id", "a", "--input", &input]).success();
    let mut resume = Process::start(&place, &["resume", "bakery/a", "--json"]);
    wait_until(&place, |shown| shown["tasks"][0]["state"] == "RUNNING");
    resume.terminate();
    std::fs::write(&file, "go").expect("there is room for a file");
    let end = resume.record();
    assert_eq!((&end["status"], &end["output"]), (&json!("COMPLETED"), &json!(true)));
    assert_eq!(resume.exit_code(), Some(0));
}

/// Waits until the run `bakery/a` stands like this.
fn wait_until(place: &Place, stands: impl Fn(&Value) -> bool) {
    while !stands(&place.record(&["show", "bakery/a"])) {}
}
