//! Rows of `tenant_position`, `frontier` and `watermark`: where tenants and queues are in the fair
//! order.

use stepwell_core::id::Queue;
use stepwell_core::queue::{OrderKey, Position};
use tokio_postgres::Row;

use super::cells::{Cells, Columns, columns, only_unsigned, selected};
use super::{Param, Read, corrupt, int, int32};

/// A tenant in a queue.
pub(crate) type TenantInQueue = (u32, Queue);

columns! {
    /// The columns of `tenant_position`.
    TENANT_POSITION: Col = "tenant_position" {
        key TenantNo "tenant_no" "int",
        key Queue "queue" "text",
        changed Last "last" "bigint",
    }
}

/// The last position that a tenant was given in a queue, if any.
pub(crate) fn read_last(row: &Row) -> Read<(TenantInQueue, Option<Position>)> {
    let cells = Cells::of(row);
    let tenant = (cells.count(Col::TenantNo)?, cells.name(Col::Queue)?);
    Ok((tenant, last(cells.get(Col::Last)?)))
}

/// -1 means never.
fn last(number: i64) -> Option<Position> {
    u64::try_from(number).ok().map(Position)
}

/// Tenants in queues, as two lists.
pub(crate) struct TenantInQueueArrays<'q> {
    tenant_no: Vec<i32>,
    queue: Vec<&'q str>,
}

impl<'q> TenantInQueueArrays<'q> {
    pub(crate) fn of(tenants: impl IntoIterator<Item = (u32, &'q Queue)>) -> Self {
        let tenant = |(no, queue): (u32, &'q Queue)| (int32(no), queue.as_str());
        let (tenant_no, queue) = tenants.into_iter().map(tenant).unzip();
        Self { tenant_no, queue }
    }

    pub(crate) fn params(&self) -> [Param<'_>; 2] {
        [&self.tenant_no, &self.queue]
    }
}

/// Last positions of tenants in queues, as lists of values.
#[derive(Default)]
pub(crate) struct PositionArrays<'q> {
    tenant_no: Vec<i32>,
    queue: Vec<&'q str>,
    last: Vec<i64>,
}

impl<'q> PositionArrays<'q> {
    pub(crate) fn of(
        positions: impl IntoIterator<Item = (&'q TenantInQueue, &'q Option<Position>)>,
    ) -> Self {
        let mut arrays = Self::default();
        for ((tenant_no, queue), last) in positions {
            arrays.tenant_no.push(int32(*tenant_no));
            arrays.queue.push(queue.as_str());
            arrays.last.push(last.map_or(-1, |last| int(last.0)));
        }
        arrays
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let param = |column: &Col| -> Param<'_> {
            match column {
                Col::TenantNo => &self.tenant_no,
                Col::Queue => &self.queue,
                Col::Last => &self.last,
            }
        };
        Col::ALL.iter().map(param).collect()
    }
}

selected! { Frontier { Queue, Position, } }

/// The greatest position that was dequeued from a queue.
pub(crate) fn read_frontier(row: &Row) -> Read<(Queue, Position)> {
    let cells = Cells::of(row);
    Ok((cells.name(Frontier::Queue)?, Position(cells.unsigned(Frontier::Position)?)))
}

selected! { Greatest { TenantNo, Queue, Position, } }

/// The greatest position of a tenant's ready tasks in a queue, if it has any there.
pub(crate) fn read_greatest(row: &Row) -> Read<(TenantInQueue, Option<Position>)> {
    let cells = Cells::of(row);
    let tenant = (cells.count(Greatest::TenantNo)?, cells.name(Greatest::Queue)?);
    let greatest: Option<i64> = cells.get(Greatest::Position)?;
    Ok((tenant, greatest.map(|position| Position(position.unsigned_abs()))))
}

/// A span of arrival numbers.
pub(crate) fn read_span(row: &Row) -> Read<u64> {
    only_unsigned(row)
}

selected! { Fact { Kind, Number, Name, Value, } }

/// One of the things that have to be known to enqueue tasks.
pub(crate) enum QueueFact {
    /// Somebody serves the service of this number in this queue.
    Served(String, u32),
    Last(TenantInQueue, Option<Position>),
    Frontier(Queue, Position),
    /// A span of arrival numbers.
    Span(u64),
}

pub(crate) fn read_fact(row: &Row) -> Read<QueueFact> {
    let cells = Cells::of(row);
    Ok(match cells.get::<i32>(Fact::Kind)? {
        1 => QueueFact::Served(cells.get(Fact::Name)?, cells.count(Fact::Number)?),
        2 => {
            let tenant = (cells.count(Fact::Number)?, cells.name(Fact::Name)?);
            QueueFact::Last(tenant, last(cells.get(Fact::Value)?))
        }
        3 => QueueFact::Frontier(cells.name(Fact::Name)?, Position(cells.unsigned(Fact::Value)?)),
        4 => QueueFact::Span(cells.unsigned(Fact::Value)?),
        kind => return Err(corrupt(format!("a queue has no facts of kind {kind}"))),
    })
}

selected! { Watermark { Number, Key, Frontier, Enqueuing, FrontierNow, EnqueuingNow, } }

/// What is known of a queue's watermark.
pub(crate) struct WatermarkView {
    pub(crate) last: Option<WatermarkRound>,
    /// The frontier now.
    pub(crate) frontier: Position,
    /// The transactions that enqueue tasks now.
    pub(crate) enqueuing: Vec<String>,
}

/// What a round left.
pub(crate) struct WatermarkRound {
    pub(crate) number: i64,
    pub(crate) key: OrderKey,
    pub(crate) frontier: Position,
    pub(crate) enqueuing: Vec<String>,
}

pub(crate) fn read_watermark(row: &Row) -> Read<WatermarkView> {
    let cells = Cells::of(row);
    let round = |number: i64| {
        Ok::<_, crate::ports::StoreError>(WatermarkRound {
            number,
            key: OrderKey(cells.unsigned(Watermark::Key)?),
            frontier: Position(cells.unsigned(Watermark::Frontier)?),
            enqueuing: cells.get(Watermark::Enqueuing)?,
        })
    };
    let frontier: Option<i64> = cells.get(Watermark::FrontierNow)?;
    Ok(WatermarkView {
        last: cells.get::<Option<i64>>(Watermark::Number)?.map(round).transpose()?,
        frontier: Position(frontier.unwrap_or_default().unsigned_abs()),
        enqueuing: cells.get(Watermark::EnqueuingNow)?,
    })
}

/// The key of the first task of a queue.
pub(crate) fn read_order_key(row: &Row) -> Read<OrderKey> {
    only_unsigned(row).map(OrderKey)
}
