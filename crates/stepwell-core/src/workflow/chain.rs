//! Chains: steps whose parent is whatever stands before them.
//!
//! The predecessor is bound late, after all insertions, so that inserting a step between two
//! others needs no change to either. Of several insertions at one anchor the later one stands
//! next to it.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::DefinitionError;

/// On which side of its anchor a chain member is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Right before it.
    Before,
    /// Right after it.
    After,
}

/// Where a chain member is inserted, instead of at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// On which side.
    pub anchor: Anchor,
    /// The name of the chain member to stand next to; it may be declared later.
    pub step: String,
}

/// One chain member as declared: its name and where it is inserted.
pub(super) type Member<'a> = (&'a str, Option<&'a Insertion>);

/// What is still to be written down of the chain, as indices into the members.
#[derive(Clone, Copy)]
enum Place {
    /// A member without those inserted next to it.
    Alone(usize),
    /// A member with everything inserted next to it.
    Group(usize),
}

/// The order of the chain, as indices into `members`.
///
/// A member and all that is inserted next to it stay together. Where a member was declared only
/// matters among those at its own anchor, so an anchor may be declared later.
pub(super) fn order(members: &[Member<'_>]) -> Result<Vec<usize>, DefinitionError> {
    let anchors = anchors(members)?;
    let mut before = vec![Vec::new(); members.len()];
    let mut after = before.clone();
    let mut open = Vec::new();
    for (ix, anchor) in anchors.iter().enumerate() {
        match anchor {
            Some((Anchor::Before, anchor)) => before[*anchor].push(Place::Group(ix)),
            Some((Anchor::After, anchor)) => after[*anchor].push(Place::Group(ix)),
            None => open.push(Place::Group(ix)),
        }
    }
    open.reverse();
    let mut order = Vec::with_capacity(members.len());
    // A stack gives back the last one first: of those after a member the later declared comes
    // first and stands next to it, of those before it the later declared comes last.
    while let Some(place) = open.pop() {
        match place {
            Place::Alone(ix) => order.push(ix),
            Place::Group(ix) => {
                open.append(&mut after[ix]);
                open.push(Place::Alone(ix));
                open.extend(before[ix].drain(..).rev());
            }
        }
    }
    if order.len() < members.len() {
        return Err(circle(members, &anchors, &order));
    }
    Ok(order)
}

/// Where a member is inserted, with the anchor as an index into the members.
type Inserted = Option<(Anchor, usize)>;

fn anchors(members: &[Member<'_>]) -> Result<Vec<Inserted>, DefinitionError> {
    let by_name: BTreeMap<&str, usize> =
        members.iter().enumerate().map(|(ix, member)| (member.0, ix)).collect();
    let find = |(name, insertion): &Member<'_>| match insertion {
        None => Ok(None),
        Some(insertion) => match by_name.get(insertion.step.as_str()) {
            Some(anchor) => Ok(Some((insertion.anchor, *anchor))),
            None => Err(DefinitionError::UnknownAnchor {
                step: (*name).to_string(),
                anchor: insertion.step.clone(),
            }),
        },
    };
    members.iter().map(find).collect()
}

/// Follows the anchors of an unplaced member until one comes up twice.
fn circle(members: &[Member<'_>], anchors: &[Inserted], order: &[usize]) -> DefinitionError {
    let mut seen = vec![false; members.len()];
    for ix in order {
        seen[*ix] = true;
    }
    let mut path = Vec::new();
    let mut next = seen.iter().position(|placed| !placed);
    while let Some(ix) = next.filter(|ix| !seen[*ix]) {
        seen[ix] = true;
        path.push(ix);
        next = anchors[ix].map(|(_, anchor)| anchor);
    }
    let start = path.iter().position(|ix| Some(*ix) == next).unwrap_or(0);
    let steps = path[start..].iter().chain(&path[start..=start]);
    DefinitionError::Cycle { steps: steps.map(|ix| members[*ix].0.to_string()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(members: &[(&str, Option<(Anchor, &str)>)]) -> Result<Vec<String>, DefinitionError> {
        let insertions: Vec<Option<Insertion>> = members
            .iter()
            .map(|(_, at)| at.map(|(anchor, step)| Insertion { anchor, step: step.to_string() }))
            .collect();
        let declared: Vec<Member<'_>> =
            members.iter().zip(&insertions).map(|(m, at)| (m.0, at.as_ref())).collect();
        let order = order(&declared)?;
        Ok(order.into_iter().map(|ix| members[ix].0.to_string()).collect())
    }

    #[test]
    fn a_member_is_inserted_after_its_anchor() {
        // G2
        let order = chain(&[
            ("validate", None),
            ("complete", None),
            ("audit", Some((Anchor::After, "validate"))),
        ]);
        assert_eq!(order.unwrap(), ["validate", "audit", "complete"]);
    }

    #[test]
    fn of_several_insertions_at_one_anchor_the_later_stands_next_to_it() {
        // G2
        let after =
            [("x", None), ("a", Some((Anchor::After, "x"))), ("b", Some((Anchor::After, "x")))];
        assert_eq!(chain(&after).unwrap(), ["x", "b", "a"]);
        let before =
            [("x", None), ("a", Some((Anchor::Before, "x"))), ("b", Some((Anchor::Before, "x")))];
        assert_eq!(chain(&before).unwrap(), ["a", "b", "x"]);
    }

    #[test]
    fn an_anchor_may_be_declared_later_or_inserted_itself() {
        // G2
        let order = chain(&[
            ("b", Some((Anchor::After, "a"))),
            ("a", Some((Anchor::Before, "z"))),
            ("z", None),
        ]);
        assert_eq!(order.unwrap(), ["a", "b", "z"]);
    }

    #[test]
    fn the_later_stands_next_to_an_anchor_that_is_declared_between_them() {
        // G2
        let order = chain(&[
            ("z", None),
            ("a", Some((Anchor::After, "x"))),
            ("x", Some((Anchor::After, "z"))),
            ("b", Some((Anchor::After, "x"))),
        ]);
        assert_eq!(order.unwrap(), ["z", "x", "b", "a"]);
    }

    #[test]
    fn an_anchor_outside_the_chain_is_refused_by_name() {
        let unknown = chain(&[("a", Some((Anchor::After, "ghost")))]);
        assert_eq!(
            unknown,
            Err(DefinitionError::UnknownAnchor { step: "a".into(), anchor: "ghost".into() })
        );
        let circle = chain(&[("a", Some((Anchor::After, "b"))), ("b", Some((Anchor::After, "a")))]);
        let steps = vec!["a".into(), "b".into(), "a".into()];
        assert_eq!(circle, Err(DefinitionError::Cycle { steps }));
        assert_eq!(chain(&[]), Ok(vec![]));
    }
}
