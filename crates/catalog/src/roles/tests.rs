#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::apply::tests::sample::*;
use crate::*;

fn catalog(changes: &[Change]) -> Catalog {
    sample().apply(changes).unwrap().catalog
}

fn user(catalog: &Catalog, text: &str) -> UserId {
    catalog.users().named(&name(text)).unwrap().id
}

fn roles(catalog: &Catalog, texts: &[&str]) -> BTreeSet<RoleId> {
    texts.iter().map(|text| catalog.roles().named(&name(text)).unwrap().id).collect()
}

fn workloads(rules: &[std::sync::Arc<WorkloadRule>]) -> Vec<&str> {
    rules.iter().map(|rule| rule.workload.as_str()).collect()
}

#[test]
fn roles_are_granted_through_roles_and_public() {
    let catalog = catalog(&[
        create_role("for_all"),
        create_role("deep"),
        grant_role("for_all", "public", false, "dbadmin"),
        grant_role("deep", "for_all", true, "dbadmin"),
    ]);
    let expected = |pairs: &[(&str, bool)]| -> BTreeMap<RoleId, bool> {
        pairs.iter().map(|(text, admin)| (*roles(&catalog, &[text]).first().unwrap(), *admin)).collect()
    };
    let (mira, gunther) = (user(&catalog, "mira"), user(&catalog, "gunther"));
    assert_eq!(catalog.granted_roles(mira), expected(&[("etl", true), ("for_all", false), ("deep", true)]));
    assert_eq!(
        catalog.granted_roles(gunther),
        expected(&[("etl", false), ("qa_role", false), ("inner", false), ("for_all", false), ("deep", true)])
    );
    let role = |text| *roles(&catalog, &[text]).first().unwrap();
    assert!(catalog.has_role(gunther, role("inner")) && catalog.has_role(mira, role("public")));
    assert!(!catalog.has_role(mira, role("qa_role")));
    assert!(catalog.may_grant_role(mira, role("etl")) && !catalog.may_grant_role(gunther, role("etl")));
    assert!(catalog.may_grant_role(user(&catalog, "dbadmin"), role("etl")));
}

#[test]
fn default_and_predefined_roles_are_on_at_login() {
    let catalog = catalog(&[grant_role("sysmonitor", "gunther", false, "dbadmin")]);
    let gunther = user(&catalog, "gunther");
    assert_eq!(catalog.roles_at_login(gunther, false), roles(&catalog, &["etl", "sysmonitor"]));
    assert_eq!(catalog.roles_at_login(gunther, true), roles(&catalog, &["etl", "sysmonitor", "qa_role", "inner"]));
    assert_eq!(catalog.default_roles(gunther), roles(&catalog, &["etl"]));
    assert_eq!(catalog.roles_at_login(user(&catalog, "mira"), false), BTreeSet::new());
    assert_eq!(catalog.roles_at_login(user(&catalog, "dbadmin"), false), roles(&catalog, &SUPERUSER_ROLES));
    let except = alter_user("gunther", UserChange::DefaultRolesAllExcept(names(&["etl"])));
    let catalog = catalog.apply(&[except]).unwrap().catalog;
    assert_eq!(catalog.roles_at_login(gunther, false), roles(&catalog, &["qa_role", "inner", "sysmonitor"]));
}

#[test]
fn roles_in_effect_are_those_enabled_and_what_is_in_them() {
    let catalog = sample();
    let (gunther, mira, dbadmin) = (user(&catalog, "gunther"), user(&catalog, "mira"), user(&catalog, "dbadmin"));
    let qa = roles(&catalog, &["qa_role"]);
    assert_eq!(catalog.roles_in_effect(gunther, &qa), roles(&catalog, &["qa_role", "inner", "public"]));
    // Not granted to her, or no longer.
    assert_eq!(catalog.roles_in_effect(mira, &qa), roles(&catalog, &["public"]));
    let own = [&SUPERUSER_ROLES[..], &["public"]].concat();
    assert_eq!(catalog.roles_in_effect(dbadmin, &BTreeSet::new()), roles(&catalog, &own));
}

#[test]
fn workloads_are_usable_through_enabled_roles() {
    let catalog = catalog(&[
        create_workload_rule(None, "batch", &["sc_b"], 2),
        grant_workload("batch", &["qa_role"]),
        create_workload_rule(None, "all", &["sc_b"], 0),
        grant_workload("all", &["public"]),
    ]);
    let usable = |who: &str, enabled: &[&str]| {
        let rules = catalog.usable_workloads(user(&catalog, who), &roles(&catalog, enabled));
        workloads(&rules).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(usable("mira", &[]), ["all", "analytics"]);
    assert_eq!(usable("gunther", &["etl"]), ["all"]);
    assert_eq!(usable("gunther", &["qa_role"]), ["batch", "qa", "all"]);
    assert_eq!(usable("mira", &["qa_role"]), ["all", "analytics"]);
    assert_eq!(usable("dbadmin", &[]), ["batch", "qa", "all", "analytics"]);
    let may = |who: &str, enabled: &[&str], workload: &str| {
        let rule = catalog.rule_of_workload(&name(workload)).unwrap().id;
        catalog.may_use_workload(user(&catalog, who), &roles(&catalog, enabled), rule)
    };
    assert!(may("gunther", &["qa_role"], "qa") && may("mira", &[], "analytics") && may("dbadmin", &[], "qa"));
    assert!(!may("gunther", &["etl"], "qa") && !may("gunther", &[], "analytics"));
}

/// The example of the seed's "Priorities", with the priority that its text forgets to set.
#[test]
fn gunther_gets_the_rule_of_the_greatest_priority() {
    let mut catalog = initial()
        .apply(&[
            create_user("Gunther"),
            create_role("analytics_role"),
            create_role("qa_role"),
            grant_role("analytics_role", "Gunther", false, "dbadmin"),
            grant_role("qa_role", "Gunther", false, "dbadmin"),
            create_workload_rule(None, "reporting", &[FIRST_SUBCLUSTER], 0),
            create_workload_rule(None, "analytics", &[FIRST_SUBCLUSTER], 1),
            create_workload_rule(None, "qa", &[FIRST_SUBCLUSTER], 2),
            grant_workload("reporting", &["Gunther"]),
            grant_workload("analytics", &["analytics_role"]),
            grant_workload("qa", &["qa_role"]),
        ])
        .unwrap()
        .catalog;
    let effective = |catalog: &Catalog, enabled: &[&str]| {
        let mut rng = StdRng::seed_from_u64(1);
        let rule = catalog.effective_workload(user(catalog, "gunther"), &roles(catalog, enabled), &mut rng);
        rule.unwrap().workload.as_str().to_owned()
    };
    assert_eq!(effective(&catalog, &[]), "reporting");
    assert_eq!(effective(&catalog, &["analytics_role", "qa_role"]), "qa");
    catalog = catalog.apply(&[alter_workload("reporting", RuleChange::Priority(3))]).unwrap().catalog;
    assert_eq!(effective(&catalog, &["analytics_role", "qa_role"]), "reporting");
}

#[test]
fn equal_priorities_are_chosen_from_and_lesser_ones_never() {
    let catalog = catalog(&[
        create_workload_rule(None, "one", &["sc_a"], 5),
        create_workload_rule(None, "two", &["sc_a"], 5),
        create_workload_rule(None, "three", &["sc_a"], 5),
        grant_workload("one", &["mira"]),
        grant_workload("two", &["etl"]),
        grant_workload("three", &["public"]),
    ]);
    let (mira, etl) = (user(&catalog, "mira"), roles(&catalog, &["etl"]));
    let reached: BTreeSet<String> = (0..200)
        .map(|seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            catalog.effective_workload(mira, &etl, &mut rng).unwrap().workload.as_str().to_owned()
        })
        .collect();
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), ["one", "three", "two"]);
}

#[test]
fn who_was_granted_nothing_is_sent_nowhere() {
    let catalog = sample();
    let mut rng = StdRng::seed_from_u64(1);
    let mut effective = |who: &str| catalog.effective_workload(user(&catalog, who), &BTreeSet::new(), &mut rng);
    assert_eq!(effective("gunther"), None);
    // The superuser may use all, and is moved by none that it was not granted.
    assert_eq!(effective("dbadmin"), None);
}
