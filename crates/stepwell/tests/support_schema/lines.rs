//! The tables that say how far queues are, each with what it refuses.

use super::Table;

pub(super) const LINES: &[Table] = &[
    Table {
        name: "tenant_position",
        only: None,
        good: &[("tenant_no", "0"), ("queue", "'q'"), ("last", "0")],
        other: &[("queue", "'r'")],
        bad: &[("a tenant twice", &[("queue", "'q'")]), ("before the line", &[("last", "-2")])],
    },
    Table {
        name: "frontier",
        only: None,
        good: &[("queue", "'q'"), ("position", "0"), FRONTIER_WORKER],
        other: &[("queue", "'r'")],
        bad: &[("a queue twice", &[("queue", "'q'")]), ("before the line", &[("position", "-1")])],
    },
    Table {
        name: "watermark",
        only: Some("postgres"),
        good: &[
            ("queue", "'q'"),
            ("service", "0"),
            ("round", "1"),
            ("order_key", "0"),
            ("frontier", "0"),
            ("enqueuing", "'{}'"),
        ],
        other: &[("round", "2")],
        bad: &[
            ("a round twice", &[("round", "1")]),
            ("no round", &[("round", "0")]),
            ("before the line", &[("order_key", "-1")]),
            ("a frontier before the line", &[("frontier", "-1")]),
        ],
    },
];

/// Only one dialect has this column; the other's tests take it away.
const FRONTIER_WORKER: (&str, &str) = ("{frontier worker}", "{its number}");
