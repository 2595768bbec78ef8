// The package's own tests, as its author plays them.
await import("../../examples/packages/frontend-mcp-relay/test/mcp-relay.test.ts");
