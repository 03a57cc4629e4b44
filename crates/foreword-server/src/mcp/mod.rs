//! MCP shapes.
