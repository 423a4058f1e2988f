//! Text, colors and escaping of pictures.

use arena_ratings::bradley_terry::Interval;
use arena_tournament::Format;
use expect_test::{ExpectFile, expect_file};
use roxmltree::Document;

use super::*;
use crate::tests::{HOSTILE, record};

/// Returns the texts of a picture, and the number of elements by name.
fn content(picture: &Picture) -> String {
    let text = picture.to_element();
    let document = Document::parse(&text).unwrap();
    let mut texts = String::new();
    let mut counts = std::collections::BTreeMap::new();
    for node in document.descendants().filter(|node| node.is_element()) {
        let name = node.tag_name().name();
        *counts.entry(name).or_insert(0) += 1;
        if let Some(text) = node.text().filter(|_| ["title", "desc", "text"].contains(&name)) {
            texts += &format!("{name}: {}\n", text.trim());
        }
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    texts + &counts.join(", ") + "\n"
}

#[track_caller]
fn check(picture: Option<Picture>, expected: ExpectFile) {
    expected.assert_eq(&content(&picture.expect("a picture")));
}

fn point(name: &str, x: f64, y: f64) -> Point {
    Point { name: name.to_owned(), link: None, x: Estimate::exact(x), y: Estimate::exact(y) }
}

const AXES: Axes<'static> = Axes { title: "Security against utility", x: "security", y: "utility", range: None };

#[test]
fn ratings_have_whiskers_and_arrows_on_open_sides() {
    check(
        ratings_picture(&record("snake", Format::RoundRobin, &["best", "crash", "even", "equal"], 2, 9)),
        expect_file!["tests/ratings_have_whiskers_and_arrows_on_open_sides.txt"],
    );
    assert!(ratings_picture(&record("snake", Format::RoundRobin, &["best", "even"], 2, 0)).is_none());
}

#[test]
fn agents_without_games_are_not_in_the_ratings_picture() {
    let picture =
        ratings_picture(&record("snake", Format::RoundRobin, &["best", "crash", "even", "equal"], 2, 1)).unwrap();
    let names = ["best", "crash", "even", "equal"].map(|name| picture.description.contains(name));
    assert_eq!(names.iter().filter(|is_there| **is_there).count(), 2, "{}", picture.description);
}

#[test]
fn a_cross_table_has_percentages_and_dots() {
    check(
        cross_table_picture(&record("snake", Format::RoundRobin, &["best", "crash", "even", "equal"], 2, 9)),
        expect_file!["tests/a_cross_table_has_percentages_and_dots.txt"],
    );
    assert!(cross_table_picture(&record("snake", Format::RoundRobin, &["best", "even"], 2, 2)).is_none());
}

#[test]
fn progress_has_a_curve_for_each_agent() {
    check(
        progress_picture(&record("snake", Format::RoundRobin, &["best", "crash", "even"], 2, 99)),
        expect_file!["tests/progress_has_a_curve_for_each_agent.txt"],
    );
}

#[test]
fn only_exact_halves_and_extremes_have_their_own_tone() {
    let place = |share: f64| HEAT.iter().position(|tone| *tone == cross::heat(share)).unwrap();
    assert_eq!([0.0, 0.01, 0.25, 0.49, 0.5, 0.51, 0.75, 0.99, 1.0].map(place), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_scatter_has_points_intervals_and_the_front() {
    let mut open = point("open", 0.2, 0.9);
    open.x.interval = Interval { low: 0.1, high: f64::INFINITY };
    check(
        scatter(&[open, point("a", 0.5, 0.5), point("b", 0.4, 0.4)], &AXES),
        expect_file!["tests/a_scatter_has_points_intervals_and_the_front.txt"],
    );
    assert!(scatter(&[], &AXES).is_none());
}

#[test]
fn names_without_room_are_only_in_the_description() {
    let points: Vec<Point> = (0..30).map(|number| point(&format!("agent-{number}"), 0.5, 0.5)).collect();
    let picture = scatter(&points, &AXES).unwrap();
    assert!(content(&picture).matches("text: agent").count() < 30);
    assert!((0..30).all(|number| picture.description.contains(&format!("agent-{number}:"))));
}

#[test]
fn the_front_has_the_points_that_none_dominates() {
    let front = |points: &[(f64, f64)]| {
        let points: Vec<Point> = points.iter().map(|(x, y)| point("", *x, *y)).collect();
        pareto_front(&points)
    };
    assert_eq!(front(&[]), [0; 0]);
    assert_eq!(front(&[(1.0, 0.0), (0.0, 1.0), (0.4, 0.4), (0.5, 0.5)]), [1, 3, 0]);
    // Equal points don't dominate each other, but dominate points that are equal in one measure only.
    assert_eq!(front(&[(1.0, 1.0), (1.0, 1.0), (1.0, 0.0)]), [0, 1]);
}

#[test]
fn untrusted_names_are_escaped() {
    let record = record("snake", Format::RoundRobin, &HOSTILE, 2, 99);
    let points: Vec<Point> = HOSTILE.iter().map(|name| point(name, 1.0, 2.0)).collect();
    for picture in [
        ratings_picture(&record).unwrap(),
        cross_table_picture(&record).unwrap(),
        progress_picture(&record).unwrap(),
        scatter(&points, &AXES).unwrap(),
    ] {
        let text = picture.to_file();
        let document = Document::parse(&text).unwrap();
        for node in document.descendants().filter(|node| node.is_element()) {
            let name = node.tag_name().name();
            let known = ["svg", "title", "desc", "style", "text", "rect", "line", "polyline", "polygon", "circle"];
            assert!(known.contains(&name), "{name}");
            assert!(node.attributes().all(|attribute| !attribute.name().starts_with("on")), "{node:?}");
        }
        assert!(!text.contains(['\u{202e}', '\u{1b}', '\u{ffff}']), "{text}");
    }
}

#[test]
fn every_color_has_a_dark_counterpart() {
    let record =
        record("snake", Format::RoundRobin, &["best", "crash", "even", "equal", "a", "bb", "ccc", "dddd"], 2, 99);
    let points = [point("a", 0.5, 0.5), point("b", 0.4, 0.4)];
    let mut lights: Vec<u32> = tones().map(|tone| tone.light).collect();
    for picture in [
        ratings_picture(&record).unwrap(),
        cross_table_picture(&record).unwrap(),
        progress_picture(&record).unwrap(),
        scatter(&points, &AXES).unwrap(),
    ] {
        for color in picture.to_element().split("\"#").skip(1) {
            let color = u32::from_str_radix(&color[..6], 16).unwrap();
            assert!(lights.contains(&color), "#{color:06X}");
        }
    }
    // The style sheet selects elements by color, so each light color must be unique.
    lights.sort_unstable();
    assert!(lights.windows(2).all(|pair| pair[0] != pair[1]));
}

/// Returns the contrast ratio of two colors, from 1 to 21. Source: WCAG 2.2.
fn contrast(one: u32, two: u32) -> f64 {
    let luminance = |color: u32| {
        let [_, red, green, blue] = color.to_be_bytes().map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    };
    let (one, two) = (luminance(one), luminance(two));
    (one.max(two) + 0.05) / (one.min(two) + 0.05)
}

#[test]
fn text_and_curves_have_enough_contrast() {
    let check = |on: Tone, what: Tone, least: f64| {
        for (on, what) in [(on.light, what.light), (on.dark, what.dark)] {
            let contrast = contrast(on, what);
            assert!(contrast >= least, "#{what:06X} on #{on:06X} has {contrast:.2}, less than {least}");
        }
    };
    for cell in HEAT {
        check(cell, INK, 4.5);
    }
    for card in [CARD, BEATEN] {
        check(card, INK, 4.5);
        check(card, SOFT, 4.5);
        for curve in CURVES {
            check(card, curve, 3.0);
        }
    }
}

#[test]
fn curves_over_time_have_bands_or_whiskers() {
    let estimate = |value: f64, low: f64, high: f64| Estimate { value, interval: Interval { low, high } };
    let few = Curve {
        name: "rating".to_owned(),
        values: vec![estimate(20.0, -80.0, 120.0), estimate(60.0, 10.0, f64::INFINITY)],
    };
    let axis = TimeAxis { title: "Elo in each tournament", x: "tournaments" };
    check(over_time(&axis, &[few]), expect_file!["tests/curves_over_time_have_bands_or_whiskers.txt"]);
    let values = (0..400).map(|game| estimate(0.5, 0.5 - 1.0 / f64::from(game + 1), 0.5 + 1.0 / f64::from(game + 1)));
    let many = Curve { name: HOSTILE[0].to_owned(), values: values.collect() };
    check(
        over_time(&TimeAxis { title: "Security", x: "games" }, &[many]),
        expect_file!["tests/curves_over_time_have_bands_or_whiskers_2.txt"],
    );
    assert!(over_time(&axis, &[]).is_none());
}

#[test]
fn a_standalone_picture_has_the_requested_theme() {
    let picture = scatter(&[point("a", 1.0, 2.0)], &AXES).unwrap();
    let file = |theme| picture.to_file_for(theme);
    assert_eq!(file(Theme::Auto), picture.to_file());
    assert!(file(Theme::Auto).contains("prefers-color-scheme"));
    assert!(!file(Theme::Light).contains("fill:#191D21") && !file(Theme::Light).contains("prefers-color-scheme"));
    assert!(file(Theme::Dark).contains("fill:#191D21") && !file(Theme::Dark).contains("prefers-color-scheme"));
    assert_eq!(["auto", "dark", "blue"].map(Theme::of), [Some(Theme::Auto), Some(Theme::Dark), None]);
}
