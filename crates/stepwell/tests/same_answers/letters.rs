//! Signals, as commands name them.

use stepwell::core::decide::NewSignal;
use stepwell::core::id::{RunId, RunKey};
use stepwell::core::run::Attributes;
use stepwell::ports::{SignalRequest, SignalTarget};
use stepwell::testing::conformance::world::payload;

use super::command::{Address, Letter};
use super::player::{Player, nth, tenant};
use super::shapes::{has_waits_in_a_row, signal};

impl Player {
    pub(crate) async fn signal(&mut self, letters: &[Letter]) -> String {
        let mut requests: Vec<SignalRequest> = Vec::new();
        for letter in letters {
            let request = self.write(*letter);
            if requests.is_empty() || self.may_follow(&requests[0], &request) {
                requests.push(request);
            }
        }
        self.words.plain(self.store.signal(requests).await)
    }

    /// Only large batches change several runs at once.
    fn may_follow(&self, first: &SignalRequest, next: &SignalRequest) -> bool {
        let is_open = self.theme.leaves_order_open() || first.to == next.to;
        is_open && !self.flows.iter().any(|flow| has_waits_in_a_row(&flow.definition))
    }

    fn write(&mut self, letter: Letter) -> SignalRequest {
        self.n_letters += 1;
        let Letter { to, run, name, key, content, has_attribute, only_if_awaited } = letter;
        let seed = nth(&self.requests, run).map(|request| &request.seed);
        let to = match (to, seed) {
            (Address::Key, Some(seed)) => SignalTarget::Key(seed.key),
            (Address::Id, Some(seed)) => SignalTarget::Id(seed.tenant.clone(), seed.id.clone()),
            (Address::Key | Address::Nowhere, _) => SignalTarget::Key(RunKey(1)),
            (Address::Id, None) => {
                SignalTarget::Id(tenant(run), RunId::new("nowhere").expect("a good name"))
            }
        };
        let key = if key == 0 { format!("own-{}", self.n_letters) } else { format!("key-{key}") };
        let attribute = || ("order".to_owned(), "4711".to_owned());
        let attributes: Attributes = has_attribute.then(attribute).into_iter().collect();
        let mut digest = [content; 32];
        digest[..2].copy_from_slice(&[name, u8::from(has_attribute)]);
        let name = signal(name).to_owned();
        let signal = NewSignal { name, key, attributes, digest, only_if_awaited };
        SignalRequest { to, signal, payload: payload(&vec![content; content.into()]) }
    }
}
