//! Colors that people with any color vision can tell apart (Okabe and Ito; cividis for heat), for light and dark pages.

/// What a shape is drawn with: its role, not its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// The page.
    Paper,
    /// Titles and labels.
    Text,
    /// Numbers along axes.
    Muted,
    /// Lines of the grid.
    Grid,
    /// A series, by number.
    Series(usize),
    /// A value of a heat map, from 0 to 255.
    Heat(u8),
    /// Black or white, whichever can be read on a value of a heat map.
    OnHeat(u8),
}

/// How many series have a color of their own.
pub const SERIES: usize = 7;

/// On light paper: blue, vermilion, green, purple, orange, sky blue, black.
const LIGHT: [u32; SERIES] = [0x00_72_b2, 0xd5_5e_00, 0x00_9e_73, 0xb0_57_8d, 0xb0_78_00, 0x2e_90_c8, 0x22_22_22];
/// The same hues on dark paper.
const DARK: [u32; SERIES] = [0x5a_b4_f0, 0xff_8a_3d, 0x2f_c9_9b, 0xe3_9a_c4, 0xf0_b4_29, 0x9a_d7_f5, 0xee_ee_ee];

/// Points of cividis, from low to high.
const CIVIDIS: [u32; 6] = [0x00_22_4e, 0x35_45_6c, 0x66_69_70, 0x94_8e_77, 0xc8_b8_66, 0xfe_e8_38];

impl Ink {
    /// Its color on light or dark paper, 0xRRGGBB.
    pub fn color(self, dark: bool) -> u32 {
        let pick = |light, night| if dark { night } else { light };
        match self {
            Self::Paper => pick(0xff_ff_ff, 0x14_17_1c),
            Self::Text => pick(0x1c_20_26, 0xe8_ea_ed),
            Self::Muted => pick(0x5a_62_6e, 0xa4_ac_b8),
            Self::Grid => pick(0xe2_e5_ea, 0x2e_34_3d),
            Self::Series(i) => pick(LIGHT[i % SERIES], DARK[i % SERIES]),
            Self::Heat(value) => cividis(value),
            Self::OnHeat(value) => {
                if value < 128 {
                    0xff_ff_ff
                } else {
                    0x00_00_00
                }
            }
        }
    }

    /// The color as CSS has it: `#rrggbb`.
    pub fn css(self, dark: bool) -> String {
        format!("#{:06x}", self.color(dark))
    }

    /// The name of the CSS variable that holds it, for roles whose color depends on the paper.
    pub fn variable(self) -> Option<String> {
        match self {
            Self::Paper => Some("--paper".to_owned()),
            Self::Text => Some("--text".to_owned()),
            Self::Muted => Some("--muted".to_owned()),
            Self::Grid => Some("--grid".to_owned()),
            Self::Series(i) => Some(format!("--s{}", i % SERIES)),
            Self::Heat(_) | Self::OnHeat(_) => None,
        }
    }
}

/// All roles whose color depends on the paper, as CSS declarations.
pub fn variables(dark: bool) -> String {
    let roles = [Ink::Paper, Ink::Text, Ink::Muted, Ink::Grid].into_iter().chain((0..SERIES).map(Ink::Series));
    roles.filter_map(|ink| Some(format!("{}:{};", ink.variable()?, ink.css(dark)))).collect()
}

fn cividis(value: u8) -> u32 {
    let at = f64::from(value) / 255.0 * (CIVIDIS.len() - 1) as f64;
    let i = (at as usize).min(CIVIDIS.len() - 2);
    let share = at - i as f64;
    let channel = |shift: u32| {
        let of = |color: u32| f64::from((color >> shift) & 0xff);
        ((of(CIVIDIS[i]) * (1.0 - share) + of(CIVIDIS[i + 1]) * share).round() as u32) << shift
    };
    channel(16) | channel(8) | channel(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of two colors, as WCAG defines it.
    fn contrast(a: u32, b: u32) -> f64 {
        let luminance = |color: u32| {
            let channel = |shift: u32| {
                let c = f64::from((color >> shift) & 0xff) / 255.0;
                if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0)
        };
        let (x, y) = (luminance(a).max(luminance(b)), luminance(a).min(luminance(b)));
        (x + 0.05) / (y + 0.05)
    }

    #[test]
    fn everything_can_be_seen_on_its_paper() {
        for dark in [false, true] {
            let paper = Ink::Paper.color(dark);
            assert!(contrast(Ink::Text.color(dark), paper) > 7.0 && contrast(Ink::Muted.color(dark), paper) > 4.5);
            for i in 0..SERIES {
                let found = contrast(Ink::Series(i).color(dark), paper);
                assert!(found > 2.9, "series {i}, dark {dark}: {found:.2}");
            }
        }
        for value in 0..=255 {
            assert!(contrast(Ink::Heat(value).color(false), Ink::OnHeat(value).color(false)) > 4.0, "{value}");
        }
    }
}
