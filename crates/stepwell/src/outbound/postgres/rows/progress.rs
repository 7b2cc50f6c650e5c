//! Rows of `progress`.

use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, selected};
use super::{Read, int32, key, token};
use crate::ports::{ProgressReport, ReportedProgress};

selected! { Reported { Node, Token, ToldAt, Text, } }

pub(crate) fn read(row: &Row) -> Read<ReportedProgress> {
    let cells = Cells::of(row);
    Ok(ReportedProgress {
        node: cells.node(Reported::Node)?,
        token: cells.token(Reported::Token)?,
        told_at: cells.time(Reported::ToldAt)?,
        text: cells.get(Reported::Text)?,
    })
}

/// Reports as lists of values.
pub(crate) struct ProgressArrays<'r> {
    pub(crate) runs: Vec<Uuid>,
    pub(crate) nodes: Vec<i32>,
    pub(crate) tokens: Vec<Uuid>,
    pub(crate) texts: Vec<&'r str>,
}

impl<'r> ProgressArrays<'r> {
    pub(crate) fn of(reports: &'r [ProgressReport]) -> Self {
        let claims = || reports.iter().map(|report| report.claim);
        Self {
            runs: claims().map(|claim| key(claim.run)).collect(),
            nodes: claims().map(|claim| int32(claim.node.0)).collect(),
            tokens: claims().map(|claim| token(claim.token)).collect(),
            texts: reports.iter().map(|report| report.text.as_str()).collect(),
        }
    }
}
