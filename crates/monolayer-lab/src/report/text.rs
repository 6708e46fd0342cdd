//! The little markup of summaries: paragraphs, headings, lists, tables, `code`.

use maud::{Markup, html};

/// Text as HTML, escaped.
pub fn markup(text: &str) -> Markup {
    let blocks: Vec<Vec<&str>> = text
        .split("\n\n")
        .map(|block| block.lines().filter(|line| !line.trim().is_empty()).collect())
        .filter(|lines: &Vec<&str>| !lines.is_empty())
        .collect();
    html! { @for lines in &blocks { (block(lines)) } }
}

fn block(lines: &[&str]) -> Markup {
    if let Some(title) = lines[0].strip_prefix('#') {
        return html! { h3 { (inline(title.trim_start_matches('#').trim())) } @if lines.len() > 1 { (block(&lines[1..])) } };
    }
    if lines.iter().all(|line| line.starts_with("- ")) {
        return html! { ul { @for line in lines { li { (inline(&line[2..])) } } } };
    }
    if lines.len() > 1 && lines.iter().all(|line| line.starts_with('|')) {
        let cells = |line: &str| line.trim().trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
        let rows: Vec<Vec<String>> = lines.iter().map(|line| cells(line)).collect();
        return table(&rows[0], &rows[2.min(rows.len())..]);
    }
    html! { p { (inline(&lines.join(" "))) } }
}

/// A table with a head.
pub fn table(head: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { @for cell in head { th { (inline(cell)) } } } }
            tbody { @for row in rows { tr { @for cell in row { td { (inline(cell)) } } } } }
        } }
    }
}

fn inline(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_escapes() {
        let text = "# A\nb `c` <script>\n\n- one\n- two\n\n| x | y |\n|---|---|\n| 1 | 2 |\n";
        let html = markup(text).into_string();
        assert_eq!(
            html,
            "<h3>A</h3><p>b <code>c</code> &lt;script&gt;</p><ul><li>one</li><li>two</li></ul><div class=\"scroll\"><table>\
             <thead><tr><th>x</th><th>y</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>"
        );
    }
}
