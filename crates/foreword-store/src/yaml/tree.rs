//! A YAML text as a tree of nodes that know where they stand.
//!
//! With `syntax`, which explains its errors, the only module that names the parser. It decides what is refused before anybody looks at meaning: broken syntax,
//! control characters, several documents, and texts that are too large, too deep or too long once their aliases are
//! followed. Sizes are counted, never expanded, so a bomb costs what its text costs. Deliberately absent: comments (they
//! are found by looking between nodes) and what any of the values mean.

use std::{borrow::Cow, ops::Range};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};

use super::{
    LoadError, MAX_DEPTH, MAX_EXPANDED_BYTES, MAX_FILE_BYTES, MAX_NODES,
    syntax::{self, syntax_error},
};

/// What a node counts towards [`MAX_EXPANDED_BYTES`] besides its text, so that a bomb of empty values is one, too.
const NODE_BYTES: u64 = 8;

/// A text's nodes.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
}

/// The place of a node in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(u32);

/// One value, or one key.
#[derive(Debug)]
pub(super) struct Node {
    /// What it is.
    pub(super) kind: Kind,
    /// Where the parser saw it, in bytes; see `layout` for what may be cut out.
    pub(super) span: Range<usize>,
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in characters, from 1.
    pub(super) column: usize,
    /// Anchor and tag, which few nodes have.
    pub(super) properties: Option<Box<Properties>>,
}

/// What stands before a node.
#[derive(Debug)]
pub(super) struct Properties {
    /// The anchor's name.
    pub(super) anchor: Option<Box<str>>,
    /// Whether an alias points to the anchor.
    pub(super) aliased: bool,
    /// The tag.
    pub(super) tag: Option<NodeTag>,
    /// From the first byte of the first property to the last of the last.
    pub(super) span: Range<usize>,
}

/// The tags that say something here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeTag {
    /// `!!str`
    Text,
    /// `!!int`, `!!bool`, `!!float`, `!!null`: what the value says anyway.
    Plain,
    /// `!!map`
    Mapping,
    /// `!!seq`
    Sequence,
    /// Any other, as written.
    Other(Box<str>),
}

/// The kinds of nodes.
#[derive(Debug)]
pub(super) enum Kind {
    /// A value without parts.
    Scalar {
        /// How it is written.
        style: Style,
        /// What it says.
        text: Box<str>,
    },
    /// A list.
    Sequence {
        /// Whether it is written in brackets.
        flow: bool,
        /// Its items.
        items: Vec<NodeId>,
    },
    /// Keys and values.
    Mapping {
        /// Whether it is written in braces.
        flow: bool,
        /// Its entries.
        entries: Vec<(NodeId, NodeId)>,
    },
    /// A reference to an anchored node.
    Alias(NodeId),
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Not at all: a key without a value.
    Absent,
    /// Without quotes.
    Plain,
    /// `'…'`
    Single,
    /// `"…"`
    Double,
    /// `|`
    Literal,
    /// `>`
    Folded,
}

impl Tree {
    /// Reads `text`.
    pub(super) fn parse(text: &str) -> Result<Self, LoadError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(LoadError::new(
                (1, 1),
                "too-large",
                format!(
                    "the file has {} bytes, more than the {MAX_FILE_BYTES} that are allowed",
                    text.len()
                ),
            )
            .hint("move some of its profiles out of it"));
        }
        syntax::refuse_control_characters(text)?;
        let mut options = granit_parser::options! {
            emit_anchor_events: true,
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        // Comments are found by looking between the nodes; buffering them would limit how many may follow each other.
        options.set_emit_comments(false);
        let mut builder = Builder::default();
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = event.map_err(|error| scan_error(&error))?;
            builder.take(event, &span)?;
        }
        builder.finish()
    }

    /// The node that holds all others.
    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    /// The node at `id`.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The node at `id`, or the one it is an alias of.
    pub(super) fn resolve(&self, id: NodeId) -> NodeId {
        match self.node(id).kind {
            // An alias cannot be anchored, so one step is all.
            Kind::Alias(target) => target,
            _ => id,
        }
    }

    /// What the scalar at `id` says; none for collections.
    pub(super) fn text(&self, id: NodeId) -> Option<&str> {
        match &self.node(self.resolve(id)).kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether `key` is the merge key.
    pub(super) fn is_merge(&self, key: NodeId) -> bool {
        let node = self.node(key);
        node.properties.is_none()
            && matches!(&node.kind, Kind::Scalar { style: Style::Plain, text } if &**text == "<<")
    }

    /// Whether nothing was written at `id`, or `null`.
    pub(super) fn is_null(&self, id: NodeId) -> bool {
        let node = self.node(self.resolve(id));
        match &node.kind {
            Kind::Scalar {
                style: Style::Absent,
                ..
            } => node.tag() != Some(&NodeTag::Text),
            Kind::Scalar {
                style: Style::Plain,
                text,
            } => {
                node.tag() != Some(&NodeTag::Text)
                    && matches!(&**text, "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }
}

impl Node {
    /// The tag, if it has one.
    pub(super) fn tag(&self) -> Option<&NodeTag> {
        self.properties.as_ref()?.tag.as_ref()
    }

    /// The anchor's name, if an alias points to it.
    pub(super) fn shared_anchor(&self) -> Option<&str> {
        let properties = self.properties.as_ref()?;
        properties.anchor.as_deref().filter(|_| properties.aliased)
    }
}

/// Makes a tree of events.
#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    open: Vec<Open>,
    anchors: Vec<Option<Anchored>>,
    root: Option<NodeId>,
    documents: usize,
}

/// A collection whose end was not seen yet.
struct Open {
    node: NodeId,
    anchor: usize,
    mapping: bool,
    children: Vec<NodeId>,
    extent: Extent,
}

/// What following the aliases would make of a node.
#[derive(Clone, Copy)]
struct Extent {
    bytes: u64,
    depth: usize,
}

/// A node that aliases may point to.
struct Anchored {
    node: NodeId,
    extent: Option<Extent>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), LoadError> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(LoadError::new(
                        position(span),
                        "several-documents",
                        "a second document starts here, but a library is one document",
                    )
                    .hint("remove the line `---`"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let style = match style {
                    ScalarStyle::Plain if is_empty(span) => Style::Absent,
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal => Style::Literal,
                    ScalarStyle::Folded => Style::Folded,
                };
                let extent = Extent {
                    bytes: NODE_BYTES + text.len() as u64,
                    depth: 1,
                };
                let kind = Kind::Scalar {
                    style,
                    text: text.into(),
                };
                let node = self.add(kind, span, tag)?;
                if style == Style::Absent {
                    self.stand_at_key(node);
                }
                self.define(anchor, node, Some(extent));
                self.place(node, extent)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                let kind = Kind::Sequence {
                    flow: style == StructureStyle::Flow,
                    items: Vec::new(),
                };
                self.open(kind, span, anchor, tag)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                let kind = Kind::Mapping {
                    flow: style == StructureStyle::Flow,
                    entries: Vec::new(),
                };
                self.open(kind, span, anchor, tag)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
            Event::Anchor(id, name) => self.name_anchor(id, &name, span),
            Event::Alias(id) => self.alias(id, span)?,
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Tree, LoadError> {
        // A text without a document has no event at all; one with only comments has the same.
        match self.root {
            Some(root) => Ok(Tree {
                nodes: self.nodes,
                root,
            }),
            None => Err(syntax::empty_file()),
        }
    }

    fn add(
        &mut self,
        kind: Kind,
        span: &Span,
        tag: Option<Cow<'_, Tag>>,
    ) -> Result<NodeId, LoadError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(LoadError::new(
                position(span),
                "too-many-values",
                format!("the file has more than {MAX_NODES} keys and values"),
            ));
        }
        let id = NodeId(u32::try_from(self.nodes.len()).expect("MAX_NODES fits into 32 bits"));
        let (line, column) = position(span);
        let properties = tag.map(|tag| {
            let range = span.tag_span().and_then(|tag| tag.byte_range());
            Box::new(Properties {
                anchor: None,
                aliased: false,
                tag: Some(node_tag(&tag)),
                span: range.unwrap_or_else(|| bytes(span)),
            })
        });
        self.nodes.push(Node {
            kind,
            span: bytes(span),
            line,
            column,
            properties,
        });
        Ok(id)
    }

    /// A value that is not there is reported where its key is, not where the parser noticed.
    fn stand_at_key(&mut self, node: NodeId) {
        let key = self
            .open
            .last()
            .filter(|open| open.mapping && open.children.len() % 2 == 1);
        if let Some(&key) = key.and_then(|open| open.children.last()) {
            let Node { line, column, .. } = self.nodes[key.0 as usize];
            let node = &mut self.nodes[node.0 as usize];
            (node.line, node.column) = (line, column);
        }
    }

    /// Puts a finished node into the collection that is open, or makes it the root.
    fn place(&mut self, node: NodeId, extent: Extent) -> Result<(), LoadError> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.children.push(node);
        open.extent.bytes = open.extent.bytes.saturating_add(extent.bytes);
        open.extent.depth = open.extent.depth.max(extent.depth + 1);
        let node = &self.nodes[node.0 as usize];
        if open.extent.bytes > MAX_EXPANDED_BYTES {
            return Err(LoadError::new(
                (node.line, node.column),
                "too-large",
                format!(
                    "with its aliases followed, the file has more than {MAX_EXPANDED_BYTES} bytes"
                ),
            )
            .hint("write shared text as a shared section and use it by its id"));
        }
        if open.extent.depth > MAX_DEPTH {
            return Err(syntax::too_deep((node.line, node.column)));
        }
        Ok(())
    }

    fn open(
        &mut self,
        kind: Kind,
        span: &Span,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
    ) -> Result<(), LoadError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(syntax::too_deep(position(span)));
        }
        let mapping = matches!(kind, Kind::Mapping { .. });
        let node = self.add(kind, span, tag)?;
        self.define(anchor, node, None);
        self.open.push(Open {
            node,
            anchor,
            mapping,
            children: Vec::new(),
            extent: Extent {
                bytes: NODE_BYTES,
                depth: 1,
            },
        });
        Ok(())
    }

    fn close(&mut self, span: &Span) -> Result<(), LoadError> {
        let open = self
            .open
            .pop()
            .expect("the parser closes only what it opened");
        let node = &mut self.nodes[open.node.0 as usize];
        node.span.end = node.span.end.max(bytes(span).end);
        match &mut node.kind {
            Kind::Sequence { items, .. } => *items = open.children,
            Kind::Mapping { entries, .. } => {
                debug_assert!(open.mapping);
                *entries = open
                    .children
                    .chunks_exact(2)
                    .map(|pair| (pair[0], pair[1]))
                    .collect();
            }
            Kind::Scalar { .. } | Kind::Alias(_) => {}
        }
        if let Some(Some(anchored)) = self.anchors.get_mut(open.anchor) {
            anchored.extent = Some(open.extent);
        }
        self.place(open.node, open.extent)
    }

    fn define(&mut self, anchor: usize, node: NodeId, extent: Option<Extent>) {
        // The parser counts anchors from 1; 0 says that there is none.
        if anchor == 0 {
            return;
        }
        if self.anchors.len() <= anchor {
            self.anchors.resize_with(anchor + 1, || None);
        }
        self.anchors[anchor] = Some(Anchored { node, extent });
    }

    fn name_anchor(&mut self, id: usize, name: &str, span: &Span) {
        let Some(Some(anchored)) = self.anchors.get(id) else {
            return;
        };
        let node = &mut self.nodes[anchored.node.0 as usize];
        let range = bytes(span);
        let properties = node.properties.get_or_insert_with(|| {
            Box::new(Properties {
                anchor: None,
                aliased: false,
                tag: None,
                span: range.clone(),
            })
        });
        properties.anchor = Some(name.into());
        properties.span =
            properties.span.start.min(range.start)..properties.span.end.max(range.end);
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<(), LoadError> {
        let anchored = self.anchors.get(id).and_then(Option::as_ref);
        let Some(&Anchored {
            node: target,
            extent: Some(extent),
        }) = anchored
        else {
            return Err(LoadError::new(
                position(span),
                "alias-in-itself",
                "the alias points to a value that it is a part of",
            ));
        };
        if let Some(properties) = &mut self.nodes[target.0 as usize].properties {
            properties.aliased = true;
        }
        let node = self.add(Kind::Alias(target), span, None)?;
        self.place(node, extent)
    }
}

fn node_tag(tag: &Tag) -> NodeTag {
    match tag.core_suffix() {
        Some("str") => NodeTag::Text,
        Some("map") => NodeTag::Mapping,
        Some("seq") => NodeTag::Sequence,
        Some(_) => NodeTag::Plain,
        None => NodeTag::Other(format!("{}{}", tag.original_handle(), tag.suffix()).into()),
    }
}

fn position(span: &Span) -> (usize, usize) {
    (span.start.line(), span.start.col() + 1)
}

fn is_empty(span: &Span) -> bool {
    bytes(span).is_empty()
}

fn bytes(span: &Span) -> Range<usize> {
    span.byte_range()
        .expect("the parser reads from memory, where it knows every offset")
}

fn scan_error(error: &ScanError) -> LoadError {
    let marker = error.marker();
    syntax_error((marker.line(), marker.col() + 1), error.kind())
}
