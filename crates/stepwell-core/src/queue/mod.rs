//! Queues of ready tasks: who stands where, who comes next, and who takes what becomes ready.

mod fair;
mod hand_over;
mod place;
mod turns;
mod watermark;

pub use fair::{
    BLOCK_LENGTH, FairError, OrderKey, POSITION_MAX, Position, TenantNo, last_after_cancel,
    next_position, order_key, stride, tenant_no,
};
pub use hand_over::{Order, ReadyTask, SlotOffer, Split, split};
pub use place::{TenantPosition, WaitsIn, surplus, waits_in};
pub use turns::{Turns, take_turns};
pub use watermark::passed_before;
