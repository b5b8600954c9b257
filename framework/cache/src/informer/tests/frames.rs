//! Tests of the stream between frames: halves of them, blank lines, garbage.

use super::*;
use crate::reflector::test_support::{ScriptedResponse, frame};

/// A6 (an answer that trickles): reads end within frames all the time on a busy watch; only a frame
/// that is old counts.
#[tokio::test(start_paused = true)]
async fn a6_a_watch_whose_every_read_ends_inside_a_new_frame_is_not_taken_for_one_that_drips() {
    let rig = Rig::synced(Server::new()).await;
    let frame = |version: usize| {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u",
            "resourceVersion": version.to_string()}, "data": {"k": "v"}});
        frame("MODIFIED", &object.to_string())
    };
    let requests = rig.server.requests().len();
    let half = |version| frame(version).split_at(40).0.to_owned();
    let other_half = |version| frame(version).split_at(40).1.to_owned();
    rig.server.send(&half(100));
    for version in 100..220 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.server.send(&(other_half(version) + &half(version + 1)));
    }
    eventually("all is read", || rig.status().resource_version == "219").await;
    assert_eq!(rig.server.requests().len(), requests, "two minutes on one connection");
    let given_up = || rig.server.requests().len() > requests;
    let took = eventually("the frame that goes on for ever is given up", given_up).await;
    assert!((Duration::from_secs(28)..Duration::from_secs(32)).contains(&took), "{took:?}");
}

/// A6 (an answer that trickles) and keep-alives: blank lines show that the connection lives, not
/// that the watch does.
#[tokio::test(start_paused = true)]
async fn a6_blank_lines_neither_count_as_frames_nor_as_begun_ones() {
    let rig = Rig::synced(Server::new()).await;
    let started = Instant::now();
    while rig.server.requests().len() == 1 {
        assert!(started.elapsed() < Duration::from_secs(700), "kept alive for ever");
        rig.server.send("\r\n\n");
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert!(started.elapsed() > Duration::from_secs(320), "{:?}", started.elapsed());
    rig.server.put("a", data("1"));
    assert_eq!(rig.caught_up().await, ["+a=1"]);
    assert_eq!(rig.server.lists(), 1);
}

/// B3: an ERROR frame that is not a Status says nothing about the version.
#[tokio::test(start_paused = true)]
async fn b3_an_error_frame_with_garbage_inside_leads_to_a_new_list() {
    for garbage in ["{}", "null", "7", "\"oops\"", r#"{"kind":"Pod","code":"x"}"#] {
        let rig = Rig::synced(Server::new()).await;
        rig.server.send(&frame("ERROR", garbage));
        eventually("it is listed again", || rig.server.lists() == 2).await;
        rig.server.put("a", data("1"));
        assert_eq!(rig.caught_up().await, ["+a=1"], "{garbage}");
    }
}

/// A6: each byte of a page comes in time, but the page never completes.
#[tokio::test(start_paused = true)]
async fn a6_a_page_that_drips_in_is_given_up_after_ten_minutes() {
    let server = Server::new();
    server.put("a", data("1"));
    server.script(|number, read| match read {
        Read::StreamingList { .. } => Some(ScriptedResponse::Status(422, "Invalid")),
        _ if number == 1 => Some(ScriptedResponse::Hang(vec!["{\"items\":[".to_owned()])),
        _ => None,
    });
    let rig = Rig::start(server);
    let started = Instant::now();
    while rig.server.requests().len() < 3 {
        assert!(started.elapsed() < Duration::from_secs(700), "it drips for ever");
        rig.server.send(" ");
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    assert!(started.elapsed() > Duration::from_secs(590), "{:?}", started.elapsed());
    assert_eq!(rig.caught_up().await, ["*a=1"]);
}

/// B6: a server that repeats frames after a list does not bring back objects that the list found
/// gone.
#[tokio::test(start_paused = true)]
async fn b6_a_frame_older_than_the_last_list_does_not_bring_back_what_was_gone_by_then() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    assert_eq!(rig.caught_up().await, ["+a=1"]);
    let old = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u",
        "resourceVersion": rig.status().resource_version}, "data": {"k": "1"}});
    rig.server.delete("a");
    rig.caught_up().await;
    rig.server.send(&frame("ERROR", r#"{"kind":"Status","code":410,"reason":"Expired"}"#));
    eventually("it is listed again", || rig.server.lists() == 2).await;
    rig.server.send(&frame("ADDED", &old.to_string()));
    rig.server.put("b", data("2"));
    assert_eq!(rig.caught_up().await, ["+b=2"]);
    assert!(rig.get("a").is_none());
}

/// B6: a repeated deletion, older than the last deletion, does not replace it.
#[tokio::test(start_paused = true)]
async fn b6_an_older_deletion_seen_again_does_not_let_an_old_state_in() {
    let rig = Rig::synced(Server::new()).await;
    let object = |uid: &str, version: &str| {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "uid": uid,
            "resourceVersion": version}, "data": {"k": version}});
        object.to_string()
    };
    let frames = [
        ("ADDED", object("u1", "101")),
        ("DELETED", object("u1", "102")),
        ("ADDED", object("u2", "103")),
        ("DELETED", object("u2", "104")),
    ];
    for (event, object) in frames.iter().chain(&frames[1..3]) {
        rig.server.send(&frame(event, object));
        // Separately, so that no event is merged with the next.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let told = ["+a=101", "-a=101", "+a=103", "-a=103"];
    assert_eq!(rig.told.take(), told);
    assert!(rig.get("a").is_none());
}
