//! The queues in the browser: visitors without an opponent meet each other, or play against a house bot.

use arena_testkit::data_folder;

use crate::driver::{Driver, Window};
use crate::play::IS_SEATED;
use crate::world::World;

/// Joins the queue on a challenge's page. House bots stay out if `accepts_house` is false.
#[track_caller]
fn join_queue(window: &Window<'_>, world: &World, accepts_house: bool) {
    window.open(&world.page("/challenges/psi"));
    if !accepts_house {
        window.click("form[action='/queue/psi'] input");
    }
    window.click("form[action='/queue/psi'] button");
}

#[track_caller]
fn path(window: &Window<'_>) -> String {
    window.run("return location.pathname").as_str().unwrap().to_owned()
}

/// Waits until the queue's page has opened the page of the seat.
#[track_caller]
fn get_seat(window: &Window<'_>) -> String {
    window.wait("location.pathname.startsWith('/play/')");
    window.wait(IS_SEATED);
    path(window)
}

#[test]
fn two_visitors_meet() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let (ada, ben) = (driver.window(), driver.window());
    join_queue(&ada, &world, false);
    ada.see("Waiting for an opponent");
    // A reload keeps the place, and a second tab shows the same place.
    let place = path(&ada);
    ada.reload();
    ada.see("Waiting for an opponent");
    let tab = driver.window();
    tab.open(&world.page(&place));
    tab.see("Waiting for an opponent");

    join_queue(&ben, &world, true);
    let seats = [get_seat(&ada), get_seat(&ben)];
    assert_ne!(seats[0], seats[1]);
    // The first of two tabs takes the seat.
    tab.excuse("status of 400");
    ada.excuse("status of 400");
    assert_eq!(get_seat(&tab), seats[0]);
    for window in [&ada, &ben] {
        window.see("Your move");
    }
}

#[test]
fn a_visitor_alone_leaves_or_plays_against_a_house_bot() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let window = driver.window();
    join_queue(&window, &world, true);
    window.see("Waiting for an opponent");
    window.see("After 30 seconds, you play against a house bot");
    window.click("button[value=leave]");
    window.see("You left the queue");
    window.click("form[action='/queue/psi'] input");
    window.click("form[action='/queue/psi'] button");
    window.see("Waiting for an opponent");
    window.click("button[value=house]");
    get_seat(&window);
    window.see("Your move");
}

#[test]
fn a_place_survives_a_restart_of_the_server() {
    let data = data_folder();
    let mut world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let (ada, ben) = (driver.window(), driver.window());
    join_queue(&ada, &world, false);
    ada.see("Waiting for an opponent");
    ada.run("window.isSame = true");
    let address = world.server.url.strip_prefix("http://").unwrap().to_owned();
    ada.excuse("net::ERR_");
    drop(world);
    ada.see("this page tries again");
    world = World::start(data.path(), &["--listen", &address]);
    ada.wait("document.getElementById('connection').innerText === '' || location.pathname.startsWith('/play/')");
    assert_eq!(ada.run("return window.isSame"), true);
    join_queue(&ben, &world, true);
    get_seat(&ada);
    get_seat(&ben);

    // The page of a place that the server no longer knows says so.
    ada.excuse("status of 404");
    ada.open(&world.page(&format!("/queue/psi/tkt_{}", "0".repeat(64))));
    ada.see("You are not in this queue");
}
