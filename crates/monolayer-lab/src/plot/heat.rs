//! Heat maps: a value for each cell of a grid, written into the cell where there is room.

use super::draw::{LABEL, MARGIN, SMALL};
use super::ink::Ink;
use super::scale::number;
use super::scene::{Anchor, Scene};
use super::text::text_width;
use super::{Figure, Heat};

/// Draws a heat map below `top`.
pub(super) fn draw(scene: &mut Scene, figure: &Figure, heat: &Heat, top: f64) {
    let values = || heat.values.iter().flatten().flatten().copied();
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let [low, high] = heat.range.unwrap_or([low, high]);
    let shade = |value: f64| if high > low { ((value - low) / (high - low) * 255.0).round() as u8 } else { 128 };
    let top = bar(scene, heat, [low, high], top + 6.0) + 6.0 + LABEL;
    scene.text(MARGIN, top, LABEL, Anchor::Start, Ink::Muted, figure.y.text());
    let names: Vec<String> = heat.y.iter().map(|&y| number(y)).collect();
    let left = MARGIN + names.iter().map(|name| text_width(name, SMALL)).fold(0.0, f64::max) + 8.0;
    let (top, right, bottom) = (top + 8.0, scene.width - MARGIN, scene.height - MARGIN - 2.0 * LABEL - 8.0);
    let (wide, tall) = ((right - left) / heat.x.len() as f64, (bottom - top) / heat.y.len() as f64);
    for (j, row) in heat.values.iter().enumerate() {
        let y = bottom - tall * (j + 1) as f64;
        scene.text(left - 7.0, y + tall / 2.0 + 4.0, SMALL, Anchor::End, Ink::Muted, names[j].clone());
        for (i, value) in row.iter().enumerate() {
            let x = left + wide * i as f64;
            let Some(value) = *value else { continue };
            let corners = vec![[x, y], [x + wide - 1.0, y], [x + wide - 1.0, y + tall - 1.0], [x, y + tall - 1.0]];
            scene.area(corners, Ink::Heat(shade(value)), 1.0);
            let text = number(value);
            if text_width(&text, SMALL) < wide - 6.0 && tall > SMALL + 4.0 {
                let ink = Ink::OnHeat(shade(value));
                scene.text(x + wide / 2.0, y + tall / 2.0 + 4.0, SMALL, Anchor::Middle, ink, text);
            }
        }
    }
    for (i, &x) in heat.x.iter().enumerate() {
        let at = left + wide * (i as f64 + 0.5);
        scene.text(at, bottom + 5.0 + SMALL, SMALL, Anchor::Middle, Ink::Muted, number(x));
    }
    scene.text(right, scene.height - MARGIN + 2.0, LABEL, Anchor::End, Ink::Muted, figure.x.text());
}

/// What the colors mean; where it ends.
fn bar(scene: &mut Scene, heat: &Heat, [low, high]: [f64; 2], top: f64) -> f64 {
    const LENGTH: f64 = 110.0;
    const PARTS: usize = 32;
    let (from, to) = (number(low), number(high));
    let start = MARGIN + text_width(&from, SMALL) + 6.0;
    for i in 0..PARTS {
        let (x, next) =
            (start + LENGTH * i as f64 / PARTS as f64, start + LENGTH * (i + 1) as f64 / PARTS as f64 + 0.5);
        let corners = vec![[x, top], [next, top], [next, top + 11.0], [x, top + 11.0]];
        scene.area(corners, Ink::Heat((i * 255 / (PARTS - 1)) as u8), 1.0);
    }
    scene.text(MARGIN, top + 10.0, SMALL, Anchor::Start, Ink::Muted, from);
    scene.text(start + LENGTH + 6.0, top + 10.0, SMALL, Anchor::Start, Ink::Muted, to.clone());
    let name = start + LENGTH + 6.0 + text_width(&to, SMALL) + 12.0;
    scene.text(name, top + 10.0, SMALL, Anchor::Start, Ink::Text, heat.name.clone());
    top + 11.0
}
