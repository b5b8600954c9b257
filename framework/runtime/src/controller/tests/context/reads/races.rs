//! Changes between a read and the registration.

use super::*;

/// Every tenth change of the map is made while readers run; none may be lost.
#[tokio::test(start_paused = true)]
async fn no_change_beside_a_run_is_lost() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.put("app", json!({ "host": "0" })).await;
    for site in 0..8 {
        world.create(&format!("site-{site}"), "map=app").await;
    }
    for turn in 1..=100 {
        world.put("app", json!({ "host": turn.to_string() })).await;
        if turn % 10 == 0 {
            // The cache is stopped and started meanwhile.
            let words = if turn % 20 == 0 { "map=app" } else { "-" };
            world.reads("site-0", words).await;
        }
    }
    running.settled().await;
    let noted = reader.noted();
    for site in 0..8 {
        let last = noted.iter().rfind(|note| note.starts_with(&format!("site-{site} ")));
        let last = last.expect("it has run");
        assert!(last.ends_with("map=app:100"), "{last}");
    }
}
