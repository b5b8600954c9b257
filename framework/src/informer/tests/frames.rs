//! What is between the frames: halves of them, blank lines, garbage.

use super::*;
use crate::reflector::script::{Answer, frame};

/// A6: reads end within frames all the time on a busy watch; only a frame that itself is old drips.
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

/// A6 and keep-alives: blank lines show that the connection lives, not that the watch does.
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

/// B3: an ERROR frame that is no Status says nothing of the version's worth.
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

/// A6: each byte of a page comes in time, the page never.
#[tokio::test(start_paused = true)]
async fn a6_a_page_that_drips_in_is_given_up_after_ten_minutes() {
    let server = Server::new();
    server.put("a", data("1"));
    server.script(|number, read| match read {
        Read::StreamingList { .. } => Some(Answer::Status(422, "Invalid")),
        _ if number == 1 => Some(Answer::Hang(vec!["{\"items\":[".to_owned()])),
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
