-- +goose Up
-- What the owner agreed to of each MCP server. Package tool/mcp.

CREATE TABLE mcp_server (
    name      TEXT PRIMARY KEY,      -- as in the configuration
    offer     TEXT NOT NULL,         -- JSON: its tools with descriptions and schemas, its prompts with their texts
    agreed_at INTEGER NOT NULL       -- milliseconds
) STRICT;
