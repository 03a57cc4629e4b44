//! Decides how the parts of a composition become one text.
//!
//! Placeholders are replaced, each part is normalised, and what is left is joined by exactly one blank line. Everything
//! is written once, directly into the final text; offsets are corrected when a part's ends are trimmed. Values are
//! inserted as they are and never looked at again. Deliberately absent: which parts there are ([`crate::compose()`]).

use std::ops::Range;

use memchr::memchr;

use crate::{
    compose::{Composition, Part, PartSource, Stability},
    diagnostic::Diagnostic,
    findings,
    library::{Library, SectionType},
    placeholder::{Segment, split},
    request::{Request, SessionName, Trust},
};

/// What stands between two parts.
const SEPARATOR: &str = "\n\n";

/// A part before it is rendered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) source: PartSource,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) section_type: Option<SectionType>,
    pub(crate) text: &'a str,
    pub(crate) trust: Trust,
    pub(crate) priority: i64,
}

/// Renders and joins `pieces`.
pub(crate) fn assemble(
    pieces: &[Piece<'_>],
    library: &Library,
    request: &Request<'_>,
) -> Composition {
    let mut assembly = Assembly::new(library, request);
    assembly.text.reserve(expected_length(pieces));
    assembly.parts.reserve(pieces.len());
    for piece in pieces {
        assembly.push(piece);
    }
    assembly.finish()
}

/// Makes `text` the whole composition, byte for byte.
pub(crate) fn verbatim(text: &str, library: &Library, request: &Request<'_>) -> Composition {
    let mut assembly = Assembly::new(library, request);
    text.clone_into(&mut assembly.text);
    assembly.unstable_from = Some(0);
    assembly.parts.push(Part {
        source: PartSource::Override,
        id: "override".to_owned(),
        name: "Override".to_owned(),
        section_type: None,
        range: 0..text.len(),
        stability: Stability::Session,
        priority: 0,
    });
    assembly.finish()
}

/// Room for the values of placeholders, beyond the texts themselves.
const ROOM_FOR_VALUES: usize = 512;

fn expected_length(pieces: &[Piece<'_>]) -> usize {
    let texts: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    texts + pieces.len() * SEPARATOR.len() + ROOM_FOR_VALUES
}

/// A composition in the making.
struct Assembly<'a> {
    library: &'a Library,
    request: &'a Request<'a>,
    text: String,
    parts: Vec<Part>,
    /// Where the first session or request value went in, or would have gone in another session.
    unstable_from: Option<usize>,
    unresolved: Vec<String>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Assembly<'a> {
    fn new(library: &'a Library, request: &'a Request<'a>) -> Self {
        Self {
            library,
            request,
            text: String::new(),
            parts: Vec::new(),
            unstable_from: None,
            unresolved: Vec::new(),
            diagnostics: findings::unknown_variables(library, request),
        }
    }

    /// Adds `piece` as the next part, unless nothing is left of it.
    fn push(&mut self, piece: &Piece<'a>) {
        let end_of_previous = self.text.len();
        if !self.parts.is_empty() {
            self.text.push_str(SEPARATOR);
        }
        let start = self.text.len();
        let mut marks = match piece.trust {
            Trust::Library => self.write_expanded(piece.text),
            Trust::Foreign => {
                self.text.push_str(piece.text);
                Marks::default()
            }
        };
        unify_line_ends(&mut self.text, start, &mut marks);
        if !trim(&mut self.text, start, &mut marks) {
            self.text.truncate(end_of_previous);
            if marks.varies {
                // With another value there would be a part here.
                self.unstable_from.get_or_insert(end_of_previous);
            }
            if piece.source == PartSource::Section {
                self.diagnostics
                    .push(findings::empty_section(piece.id, end_of_previous));
            }
            return;
        }
        let varies = piece.source == PartSource::Context || marks.varies;
        self.note_marks(piece, start, marks);
        self.parts.push(Part {
            source: piece.source,
            id: piece.id.to_owned(),
            name: piece.name.to_owned(),
            section_type: piece.section_type,
            range: start..self.text.len(),
            stability: if varies {
                Stability::Session
            } else {
                Stability::Static
            },
            priority: piece.priority,
        });
    }

    /// Writes `text` with its placeholders replaced.
    fn write_expanded(&mut self, text: &'a str) -> Marks<'a> {
        let (library, request) = (self.library, self.request);
        let mut marks = Marks::default();
        let meaning_of = |name| look_up(name, library, request);
        split(text, meaning_of, |segment| {
            let start = self.text.len();
            match segment {
                Segment::Text(text)
                | Segment::Placeholder {
                    meaning: Value::Default(text),
                    ..
                } => self.text.push_str(text),
                Segment::Placeholder {
                    written,
                    meaning: Value::Varying(value),
                } => {
                    self.text.push_str(value);
                    marks.varies = true;
                    let range = start..self.text.len();
                    marks.first_varying.get_or_insert((written, range));
                }
                Segment::Placeholder {
                    written,
                    meaning: Value::Missing(name),
                } => {
                    self.text.push_str(written);
                    let range = start..self.text.len();
                    marks.first_varying.get_or_insert((written, range));
                    let known = self.unresolved.iter().any(|seen| seen == name.as_str());
                    if !known {
                        self.unresolved.push(name.as_str().to_owned());
                        marks.missing.push((name, start..self.text.len()));
                    }
                }
            }
        });
        marks
    }

    /// Turns what was marked in a part into problems, and remembers where the stable prefix ends.
    fn note_marks(&mut self, piece: &Piece<'_>, start: usize, marks: Marks<'_>) {
        for (name, range) in marks.missing {
            self.diagnostics
                .push(findings::unresolved(piece.id, name, range));
        }
        if piece.source == PartSource::Context {
            self.unstable_from.get_or_insert(start);
        } else if let Some((written, range)) = marks.first_varying {
            self.unstable_from.get_or_insert(range.start);
            self.diagnostics
                .push(findings::unstable_prefix(piece.id, written, range));
        }
    }

    fn finish(mut self) -> Composition {
        findings::duplicate_parts(&self.text, &self.parts, &mut self.diagnostics);
        self.diagnostics.extend(findings::too_long(
            &self.text,
            &self.parts,
            self.request.budget,
        ));
        Composition {
            stable_prefix: self.unstable_from.unwrap_or(self.text.len()),
            text: self.text,
            parts: self.parts,
            unresolved: self.unresolved,
            diagnostics: self.diagnostics,
        }
    }
}

/// What a known name stands for in one composition.
enum Value<'a> {
    /// The library's own value, the same for all sessions.
    Default(&'a str),
    /// A value of the session or the request.
    Varying(&'a str),
    /// A session name without a value.
    Missing(SessionName),
}

/// The value of `name`: the request's, else the session's, else the library's default. None for unknown names.
fn look_up<'a>(name: &str, library: &'a Library, request: &'a Request<'a>) -> Option<Value<'a>> {
    let value = match SessionName::from_word(name) {
        Some(name) => {
            let value = request.session.get(name);
            value.map_or(Value::Missing(name), Value::Varying)
        }
        None => Value::Default(library.draft().variables.get(name)?),
    };
    let requested = request.variables.get(name);
    Some(requested.map_or(value, |text| Value::Varying(text)))
}

/// Places in a part that are of interest once the part is trimmed.
#[derive(Default)]
struct Marks<'a> {
    /// Whether a session or request value went in.
    varies: bool,
    /// The first placeholder of a session or request, and what stands for it: a value, or, without one, itself.
    first_varying: Option<(&'a str, Range<usize>)>,
    /// Session names without a value that appeared here for the first time.
    missing: Vec<(SessionName, Range<usize>)>,
}

impl Marks<'_> {
    /// Follows the text to where its bytes went.
    fn move_by(&mut self, new_offset: impl Fn(usize) -> usize) {
        let ranges = self.first_varying.iter_mut().map(|(_, range)| range);
        for range in ranges.chain(self.missing.iter_mut().map(|(_, range)| range)) {
            *range = new_offset(range.start)..new_offset(range.end);
        }
    }
}

/// Makes LF the only line end of the part that begins at `start`.
///
/// The whole part is looked at, because the two bytes of a CRLF may come from a text and from a value in it.
fn unify_line_ends(text: &mut String, start: usize, marks: &mut Marks<'_>) {
    if memchr(b'\r', &text.as_bytes()[start..]).is_none() {
        return;
    }
    let part = text.split_off(start);
    text.push_str(&part.replace("\r\n", "\n").replace('\r', "\n"));
    marks.move_by(|offset| offset - part[..offset - start].matches("\r\n").count());
}

/// Takes leading blank lines and trailing white space from the part that begins at `start`.
///
/// The indentation of the first line with text stays. Answers whether anything is left.
fn trim(text: &mut String, start: usize, marks: &mut Marks<'_>) -> bool {
    text.truncate(text.trim_end().len().max(start));
    let part = &text[start..];
    let indented = part.len() - part.trim_start().len();
    let blank_lines = part[..indented].rfind('\n').map_or(0, |at| at + 1);
    if blank_lines > 0 {
        text.drain(start..start + blank_lines);
    }
    let end = text.len();
    marks.move_by(|offset| offset.saturating_sub(blank_lines).clamp(start, end));
    end > start
}
