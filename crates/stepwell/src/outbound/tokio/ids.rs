use stepwell_core::id::RunKey;

use crate::ports::Ids;

/// Ids and chance from the operating system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemIds;

impl Ids for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "this is the leaf that makes ids")]
    fn run_key(&self) -> RunKey {
        RunKey(uuid::Uuid::now_v7().as_u128())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the leaf that makes chance")]
    fn random(&self) -> u64 {
        // A version 4 id is random but for six fixed bits, all in the upper half of either word.
        let (upper, lower) = uuid::Uuid::new_v4().as_u64_pair();
        upper.rotate_left(32) ^ lower
    }
}
