use super::*;

fn request(n: u16) -> Request {
    Request {
        verb: "get".into(),
        group: String::new(),
        resource: "pods".into(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
        user: "alice".into(),
        agent: String::new(),
        code: n,
        at: 0,
    }
}

#[test]
fn the_ring_keeps_the_newest_entries_and_counts_the_others() {
    let audit = Audit::default();
    for n in 0..5000 {
        audit.record(&request(n), &Detail::default());
    }
    let all = audit.all();
    assert_eq!((all.len(), audit.dropped(), audit.lost()), (KEPT, 904, 0));
    assert_eq!((&all[0]["code"], &all[KEPT - 1]["code"]), (&json!(904), &json!(4999)));
}

#[test]
fn an_impersonated_user_stands_beside_the_real_one() {
    let detail = Detail { impersonator: "root".into(), ..Detail::default() };
    let entry = entry(&request(200), &detail);
    assert_eq!((&entry["user"], &entry["impersonatedUser"]), (&json!("root"), &json!("alice")));
}
