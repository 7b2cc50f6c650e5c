//! The tables of names, which views read.

use super::{Columns, Table};

pub(super) const NAMES: &[Table] = &[
    numbered("run_status", STATE),
    numbered("task_state", STATE),
    numbered("attempt_state", ATTEMPT_STATE),
    numbered("memo_state", STATE),
    numbered("wait_kind", STATE),
    numbered("worker_state", STATE),
    Table {
        name: "run_timer",
        only: None,
        good: &[("node", "20"), ("name", "'TWENTY'")],
        other: &[("node", "21"), ("name", "'TWENTY-ONE'")],
        bad: &[
            ("a number twice", &[("node", "20")]),
            ("a name twice", &[("name", "'TWENTY'")]),
            ("no name", &[("name", "null")]),
        ],
    },
];

const STATE: Columns = &[("number", "20"), ("name", "'TWENTY'")];
const ATTEMPT_STATE: Columns =
    &[("number", "20"), ("name", "'TWENTY'"), ("event", "'E'"), ("event_if_retried", "'E'")];

const fn numbered(name: &'static str, good: Columns) -> Table {
    Table {
        name,
        only: None,
        good,
        other: &[("number", "21"), ("name", "'TWENTY-ONE'")],
        bad: &[
            ("a number twice", &[("number", "20")]),
            ("a name twice", &[("name", "'TWENTY'")]),
            ("no name", &[("name", "null")]),
        ],
    }
}
