#![expect(clippy::indexing_slicing, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::place;
use crate::NodeId;

type Placement = Vec<Vec<NodeId>>;

fn workers(ids: impl IntoIterator<Item = u64>) -> Vec<NodeId> {
    ids.into_iter().map(NodeId).collect()
}

/// How often each worker stands in a list.
fn loads(workers: &[NodeId], placed: impl Iterator<Item = NodeId>) -> BTreeMap<NodeId, usize> {
    let mut loads: BTreeMap<NodeId, usize> = workers.iter().map(|worker| (*worker, 0)).collect();
    placed.for_each(|worker| *loads.get_mut(&worker).unwrap_or(&mut 0) += 1);
    loads
}

fn is_even(loads: &BTreeMap<NodeId, usize>) -> bool {
    let (least, most) = (loads.values().min(), loads.values().max());
    most.copied().unwrap_or(0) <= least.copied().unwrap_or(0) + 1
}

/// What holds for every placement.
fn check(placement: &Placement, shard_count: u32, replica_count: u32, workers: &[NodeId]) {
    assert_eq!(placement.len(), shard_count as usize);
    for shard in placement {
        assert_eq!(shard.len(), workers.len().min(replica_count as usize));
        assert_eq!(shard.iter().collect::<BTreeSet<_>>().len(), shard.len(), "two replicas on one worker");
        assert!(shard.iter().all(|worker| workers.contains(worker)));
    }
    let leaders = loads(workers, placement.iter().filter_map(|shard| shard.first().copied()));
    assert!(is_even(&leaders), "leaders {leaders:?}");
    let replicas = loads(workers, placement.iter().flatten().copied());
    assert!(is_even(&replicas), "replicas {replicas:?}");
}

/// How many replicas are where they were not.
fn moves(before: &Placement, after: &Placement) -> usize {
    let is_new = |(shard, workers): (usize, &Vec<NodeId>)| {
        workers.iter().filter(|worker| !before[shard].contains(worker)).count()
    };
    after.iter().enumerate().map(is_new).sum()
}

/// The fewest moves that any anti-affine and even placement needs: a flow of least cost from shards to workers.
fn fewest_moves(before: &Placement, replica_count: usize, workers: &[NodeId]) -> i64 {
    const MUST: i64 = 1_000_000;
    let (shards, count) = (before.len(), workers.len());
    let wanted = replica_count.min(count);
    let low = shards * wanted / count;
    let (source, sink) = (shards + count, shards + count + 1);
    // From, to, capacity, cost; the reverse edge follows each.
    let mut edges: Vec<(usize, usize, i64, i64)> = Vec::new();
    let mut edge = |from, to, capacity, cost| {
        edges.push((from, to, capacity, cost));
        edges.push((to, from, 0, -cost));
    };
    for (shard, kept) in before.iter().enumerate() {
        edge(source, shard, wanted as i64, 0);
        for (position, worker) in workers.iter().enumerate() {
            edge(shard, shards + position, 1, i64::from(!kept.contains(worker)));
        }
    }
    for position in 0..count {
        edge(shards + position, sink, low as i64, -MUST);
        edge(shards + position, sink, 1, 0);
    }
    let mut cost = 0;
    for _ in 0..shards * wanted {
        let mut distance = vec![i64::MAX; sink + 1];
        let mut by = vec![None; sink + 1];
        distance[source] = 0;
        for _ in 0..=sink {
            for (index, (from, to, capacity, length)) in edges.iter().copied().enumerate() {
                if capacity > 0 && distance[from] < i64::MAX && distance[from] + length < distance[to] {
                    distance[to] = distance[from] + length;
                    by[to] = Some(index);
                }
            }
        }
        let mut at = sink;
        while let Some(index) = by[at] {
            edges[index].2 -= 1;
            edges[index ^ 1].2 += 1;
            cost += edges[index].3;
            at = edges[index].0;
        }
    }
    cost + MUST * (low * count) as i64
}

#[test]
fn the_first_placement_goes_around() {
    let four = workers([3, 5, 7, 9]);
    let placement: Placement = [[3, 5], [5, 7], [7, 9], [9, 3]].into_iter().map(workers).collect();
    assert_eq!(place(4, 2, &four, &[]), placement);
}

#[test]
fn without_workers_shards_have_no_place() {
    assert_eq!(place(2, 1, &[], &[]), vec![Vec::new(), Vec::new()]);
    assert_eq!(place(2, 2, &[], &vec![workers([1, 2]); 2]), vec![Vec::new(), Vec::new()]);
}

#[test]
fn one_replica_again_keeps_the_leaders() {
    let four = workers(1..=4);
    let before = place(8, 3, &four, &[]);
    let after = place(8, 1, &four, &before);
    let leaders: Placement = before.iter().map(|shard| vec![shard[0]]).collect();
    assert_eq!(after, leaders);
}

#[test]
fn a_lost_leader_is_followed_by_a_follower() {
    let before = place(8, 2, &workers(1..=4), &[]);
    let after = place(8, 2, &workers(1..=3), &before);
    for (old, new) in before.iter().zip(&after).filter(|(old, _)| old[0] == NodeId(4)) {
        assert!(old.contains(&new[0]), "{old:?} became {new:?}");
    }
    check(&after, 8, 2, &workers(1..=3));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_first_placement_is_even(shards in 1_u32..60, replicas in 1_u32..6, count in 1_u64..12) {
        let workers = workers(1..=count);
        check(&place(shards, replicas, &workers, &[]), shards, replicas, &workers);
    }

    #[test]
    fn placements_stay_even_and_move_little(
        shards in 1_u32..20,
        steps in proptest::collection::vec((1_u32..4, proptest::collection::btree_set(1_u64..8, 1..7)), 1..6),
    ) {
        let mut placement: Placement = Vec::new();
        for (replicas, ids) in steps {
            let workers = workers(ids);
            let after = place(shards, replicas, &workers, &placement);
            check(&after, shards, replicas, &workers);
            if !placement.is_empty() {
                let (moved, fewest) = (moves(&placement, &after), fewest_moves(&placement, replicas as usize, &workers));
                prop_assert_eq!(moved as i64, fewest);
            }
            // What is in place stays in place.
            prop_assert_eq!(&place(shards, replicas, &workers, &after), &after);
            placement = after;
        }
    }

    #[test]
    fn any_previous_placement_is_mended(
        shards in 1_u32..12,
        replicas in 1_u32..5,
        count in 1_u64..6,
        previous in proptest::collection::vec(proptest::collection::vec(1_u64..8, 0..5), 0..14),
    ) {
        let workers = workers(1..=count);
        let previous: Placement = previous.into_iter().map(|ids| ids.into_iter().map(NodeId).collect()).collect();
        check(&place(shards, replicas, &workers, &previous), shards, replicas, &workers);
    }
}
